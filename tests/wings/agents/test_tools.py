"""`transduce mcp`: the client of the same package calls every tool, in one process and through pipes."""

import sys
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import anyio
import pytest
from mcp import Client, StdioServerParameters
from mcp.client.stdio import stdio_client

import transduce
from corpora import reverse_texts
from models import make_model
from transduce.decoding.translator import Translator
from transduce.wings.agents.tools import server

Call = Callable[..., Awaitable[Any]]
TEXTS = [*reverse_texts(2, seed=7)[0], "", "ka lo.\n\nmi <b>nu</b> re", "7"]


@pytest.fixture(scope="module")
def folders(tmp_path_factory: pytest.TempPathFactory) -> list[Path]:
    """The folders of two models, en-de and de-en."""
    folder = tmp_path_factory.mktemp("agents")
    turned = {"data.source": "de", "data.target": "en"}
    return [make_model(folder / "en-de", {}), make_model(folder / "de-en", turned, held_out=0)]


@pytest.fixture(scope="module")
def translators(folders: list[Path]) -> list[Translator]:
    return [transduce.load(folder, engine="torch") for folder in folders]


def talk(translators: list[Translator], conversation: Callable[[Call], Awaitable[None]]) -> None:
    """Let a client call the tools of a new session."""

    async def run() -> None:
        async with Client(server(translators)) as client:

            async def call(tool: str, **arguments: Any) -> Any:
                answer = await client.call_tool(tool, arguments)
                if answer.is_error:
                    return answer.content[0].text
                found = answer.structured_content
                return found if tool == "glossary" else found["result"]

            await conversation(call)

    anyio.run(run)


def test_the_tools_describe_themselves(translators):
    async def run() -> None:
        async with Client(server(translators)) as client:
            tools = {tool.name: tool for tool in (await client.list_tools()).tools}
        assert set(tools) == {"translate", "score", "glossary", "languages"}
        assert all(tool.description and tool.output_schema for tool in tools.values())
        required = {name: tool.input_schema.get("required", []) for name, tool in tools.items()}
        assert required == {
            "translate": ["texts"],
            "score": ["sources", "targets"],
            "glossary": [],
            "languages": [],
        }

    anyio.run(run)


def test_texts_get_the_translations_of_the_translator(translators):
    async def conversation(call: Call) -> None:
        for translator, texts in zip(translators, (TEXTS, TEXTS[:1]), strict=True):
            source, target = translator.require_direction()
            found = await call("translate", texts=texts, source=source, target=target)
            assert found == [
                {
                    "text": each.text,
                    "confidence": each.confidence,
                    "flags": list(each.flags),
                    "alternatives": [],
                }
                for each in translator.translate(texts, sentences=True)
            ]
            assert found == await call("translate", texts=texts, source=source)
        [found] = await call("translate", texts=TEXTS[:1], target="de", alternatives=2)
        [best] = translators[0].translate(TEXTS[:1], n_best=3, sentences=True)
        assert found["alternatives"] == [each.text for each in best.alternatives]

    talk(translators, conversation)


def test_scores_are_those_of_the_translator(translators):
    sources, targets = reverse_texts(5, seed=8)

    async def conversation(call: Call) -> None:
        found = await call("score", sources=sources, targets=targets, source="en")
        expected = translators[0].score(sources, targets)
        assert [each["log_prob"] for each in found] == pytest.approx(
            [each.log_prob for each in expected], abs=1e-4
        )
        assert [each["detached"] for each in found] == [each.detached for each in expected]

    talk(translators, conversation)


def test_the_glossary_of_a_session_holds_for_its_direction(translators):
    async def conversation(call: Call) -> None:
        async def with_terms(**arguments: Any) -> str:
            [found] = await call("translate", texts=["ka lo"], source="en", **arguments)
            return found["text"]

        plain = await with_terms()
        assert await call("glossary", source="en") == {}
        assert "po du" in await with_terms(glossary={"lo": "po du"})
        assert await with_terms() == plain, "a term for one call is used by the next one"
        assert await call("glossary", terms={"lo": "du ya"}, source="en") == {"lo": "du ya"}
        assert "du ya" in await with_terms()
        both = await with_terms(glossary={"ka": "ga we"})
        assert "du ya" in both and "ga we" in both
        assert "po du" in await with_terms(glossary={"lo": "po du"})
        assert await call("glossary", source="de") == {}
        assert await call("glossary", terms={"lo": ""}, source="en") == {}
        assert await with_terms() == plain

    talk(translators, conversation)
    talk(translators, conversation)  # another session has no terms of the first one


def test_directions_are_listed(translators):
    async def conversation(call: Call) -> None:
        assert await call("languages") == [
            {"source": "en", "target": "de"},
            {"source": "de", "target": "en"},
        ]

    talk(translators, conversation)


@pytest.mark.parametrize(
    ("tool", "arguments", "said"),
    [
        ("translate", {}, "There are several such directions: de-en, en-de. Name the source"),
        ("translate", {"source": "fr"}, "does not translate from fr. Choose one of its directions"),
        ("translate", {"source": "en", "target": "en"}, "does not translate from en to en"),
        ("translate", {"source": "en", "alternatives": 99}, "n_best must be from 1 to"),
        ("translate", {"source": "en", "alternatives": -1}, "n_best must be from 1 to"),
        ("translate", {"source": "en", "glossary": {"ka": " "}}, "must have a source and a target"),
        ("glossary", {"source": "en", "terms": {" ": "zu"}}, "must have a source and a target"),
        ("score", {"source": "en", "sources": ["ka"], "targets": []}, "1 sources but 0 targets"),
        ("score", {"source": "en", "sources": ["a\nb"], "targets": ["a"]}, "contains a line break"),
        ("translate", {"texts": "ka lo"}, "should be a valid list"),
    ],
)
def test_mistakes_are_sentences_and_the_session_goes_on(translators, tool, arguments, said):
    async def conversation(call: Call) -> None:
        given = {"texts": ["ka lo"]} if tool == "translate" else {}
        answer = await call(tool, **(given | arguments))
        assert isinstance(answer, str) and said in answer and "Traceback" not in answer
        assert await call("glossary", source="en") == {}
        assert len(await call("translate", texts=["ka lo"], source="en")) == 1

    talk(translators, conversation)


def test_one_model_needs_no_languages(translators):
    async def conversation(call: Call) -> None:
        [found] = await call("translate", texts=["ka lo"])
        assert found["text"] == translators[0].translate(["ka lo"])[0].text

    talk(translators[:1], conversation)


def test_calls_at_the_same_time_find_the_same(translators):
    async def conversation(call: Call) -> None:
        answers: list[Any] = []

        async def ask() -> None:
            answers.append(await call("translate", texts=TEXTS, source="en"))

        async with anyio.create_task_group() as group:
            for _ in range(3):
                group.start_soon(ask)
        assert len(answers) == 3 and all(answer == answers[0] for answer in answers)

    talk(translators, conversation)


def test_the_command_talks_over_standard_input_and_output(folders, translators, tmp_path):
    command = StdioServerParameters(
        command=sys.executable,
        args=["-m", "transduce", "mcp", *map(str, folders), "--engine", "torch"],
        cwd=tmp_path,
        env={"CUDA_VISIBLE_DEVICES": "", "XDG_CACHE_HOME": str(tmp_path), "OMP_NUM_THREADS": "1"}
        | {"PYTHONPATH": str(Path(transduce.__file__).parents[1])},
    )

    async def run() -> None:
        with anyio.fail_after(120):
            async with Client(stdio_client(command)) as client:
                answer = await client.call_tool("translate", {"texts": TEXTS, "source": "en"})
                mistake = await client.call_tool("translate", {"texts": TEXTS, "source": "fr"})
        texts = [each["text"] for each in answer.structured_content["result"]]
        expected = translators[0].translate(TEXTS, sentences=True)
        assert texts == [each.text for each in expected]
        assert mistake.is_error and "does not translate from fr" in mistake.content[0].text

    anyio.run(run)
