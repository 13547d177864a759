"""Model cards by hand."""

from dataclasses import replace

from transduce.config.schema import DataConfig, RunConfig
from transduce.training.card import card, code, model_card, translate_command

CONFIG = RunConfig(data=DataConfig(source="en", target="de"))
SEVERAL = replace(CONFIG, data=replace(CONFIG.data, directions=("en-de", "fr-de")))


def test_a_card_has_a_title_and_paragraphs():
    assert card(CONFIG, "One.\n\n", "\nTwo.") == "# en → de\n\nOne.\n\nTwo.\n"
    assert card(SEVERAL, purpose="ONNX") == "# en-de, fr-de, for ONNX\n"
    assert code(["a", "b"]) == "```\na\nb\n```"


def test_the_command_names_the_languages_of_a_multilingual_model():
    files = "--input text.en --output text.de"
    assert translate_command(CONFIG) == f"transduce translate . {files}  # in this folder"
    assert translate_command(SEVERAL) == f"transduce translate . --from en --to de {files}"


def test_the_card_of_a_model_says_how_to_use_it():
    python = "python -c \"import transduce; print(transduce.load('.').translate(['…']{})[0].text)\""
    for config, target in ((CONFIG, ""), (SEVERAL, ", target='de'")):
        found = model_card(config, {"parameters": 5})
        lines = found.splitlines()
        assert lines[2:8] == [
            "Trained with transduce.",
            "",
            "```",
            translate_command(config),
            python.format(target),
            "```",
        ]
        assert "| parameters | 5 |" in lines and f"| model | {config.model.shape} |" in lines
        assert lines[-1].startswith("The model suits texts like those that it was trained on.")
    parser = model_card(replace(CONFIG, data=replace(CONFIG.data, symbols=True)), {})
    assert "transduce parse . --input sentences.txt  # in this folder" in parser
    assert "import transduce" not in parser
