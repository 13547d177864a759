"""Tests of transduce/wings/serving/network.py."""

import pytest

from servers import Echo
from transduce.tokens.tokenizer import Tokenizer

pytest.importorskip("fastapi", reason="pip install 'transduce[serve]'")
from requests_of_tests import WORDED, client, guard
from transduce.wings.serving import network
from transduce.wings.serving.limits import Limits


def test_a_proxy_says_under_which_path_it_serves(tokenizer: Tokenizer, engine: Echo) -> None:
    urls = []
    for address in ("192.0.2.9", "192.0.2.3"):
        app = network.server(
            guard(tokenizer, engine, proxied=True), Limits(), ["192.0.2.9"]
        ).config.app
        with client(app, address) as asking:
            headers = {
                "X-Forwarded-Prefix": "/tr/",
                "X-Forwarded-For": "192.0.2.1",
                "Host": "localhost",
            }
            answer = asking.post(
                "/translate_file", data=WORDED, files={"file": ("a.txt", b"ka lo")}, headers=headers
            )
            urls.append(answer.json()["translatedFileUrl"])
            assert asking.get(urls[-1].replace("/tr/", "/")).status_code == 200
    assert [url.startswith("http://localhost/tr/download_file/") for url in urls] == [True, False]
