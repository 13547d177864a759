"""Everything that the registries name, with the types that the core expects; mypy checks this file."""

from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

from torch import Tensor, nn

from transduce.commands.evaluate import Evaluation
from transduce.commands.translate import Call
from transduce.config.schema import ModelConfig, ModelOptions, RunConfig
from transduce.config.settings import Settings
from transduce.decoding import torch_engine
from transduce.decoding.registry import OpenEngine
from transduce.decoding.searcher import Searcher
from transduce.decoding.stepper import ModelStepper
from transduce.decoding.translator import OpenGlossarySearch, PrepareTyped
from transduce.decoding.types import (
    Guide,
    NBestLists,
    Sentences,
    Term,
    TermFinder,
    TokenFilter,
    TranslationMemory,
)
from transduce.model.seq2seq import Seq2Seq
from transduce.model.transformer import Transformer
from transduce.preparation.copies import MakeCopies
from transduce.preparation.prepared import Prepared
from transduce.system.profiling import Profile
from transduce.text import jsonl, tsv
from transduce.text.formats import CorpusFile, Document, DocumentFile, TextPair
from transduce.text.languages import Direction
from transduce.text.pair_batch import TextColumn
from transduce.text.pairs import Origin, Pair
from transduce.text.rules import MoreRules, Rules
from transduce.tokens.tokenizer import Tokenizer
from transduce.tokens.vocabulary import Vocabulary
from transduce.training.facts import Fact
from transduce.wings.cluster import command as cluster
from transduce.wings.completion import infilling, prefixes, typed
from transduce.wings.completion import lines_command as guides_command
from transduce.wings.ct2 import opening
from transduce.wings.documents import (
    csv_tables,
    epub,
    excel,
    html,
    keyed_files,
    lines,
    lines_command,
    markdown,
    ooxml,
    opendocument,
    other_subtitles,
    parallel_documents,
    po,
    string_catalog,
    subtitles,
    tmx,
    translate_command,
    xliff,
)
from transduce.wings.export import onnx_engine
from transduce.wings.memories import copying, nearest
from transduce.wings.memories import opening as opening_memory
from transduce.wings.pretrained import extending, low_rank
from transduce.wings.rules import corpus_faults, more_rules
from transduce.wings.synthetic import back_translation, remembering
from transduce.wings.tables import parquet, records
from transduce.wings.terms import annotating, glossary, searching
from transduce_lab import operations, options, words
from transduce_lab.comparing import evaluate_command
from transduce_lab.families import (
    blockwise,
    bytenet,
    convolutional,
    deep_att,
    neural_gpu,
    recurrent,
)
from transduce_lab.paper import paper_bleu
from transduce_lab.parsing import command as parsing
from transduce_lab.parsing import trees

ENGINES: list[OpenEngine] = [
    torch_engine.open_engine,
    opening.open_engine,
    blockwise.open_engine,
]
EXPORT_FORMATS: list[OpenEngine] = [onnx_engine.open_engine]
FAMILIES: list[type[Seq2Seq]] = [
    Transformer,
    recurrent.Recurrent,
    convolutional.Convolutional,
    bytenet.ByteNet,
    deep_att.DeepAtt,
    neural_gpu.NeuralGPU,
]
MODEL_OPTIONS: list[type[ModelOptions]] = [
    options.BlockwiseOptions,
    options.WindowOptions,
    options.ExpertOptions,
    options.RecurrentOptions,
    options.KernelOptions,
    options.ConvolutionOptions,
    options.FrontEndOptions,
]
READ_PAIRS: list[Callable[[CorpusFile], Iterator[TextPair]]] = [
    tsv.read_tsv,
    jsonl.read_jsonl,
    parquet.read_parquet,
    tmx.read_tmx_pairs,
    xliff.read_xliff_pairs,
    po.read_po_pairs,
    csv_tables.read_csv_pairs,
    excel.read_excel_pairs,
    string_catalog.read_catalog_pairs,
    trees.read_tree_pairs,
]
READ_PARALLEL: list[Callable[[str, str], Iterator[TextPair]]] = [
    parallel_documents.read_page_pairs,
    parallel_documents.read_subtitle_pairs,
    keyed_files.read_keyed_pairs,
]
READ_DOCUMENT: list[Callable[[DocumentFile], Document]] = [
    lines.read_text,
    tmx.read_tmx,
    xliff.read_xliff,
    po.read_po,
    html.read_html,
    subtitles.read_subtitles,
    other_subtitles.read_other_subtitles,
    csv_tables.read_csv,
    excel.read_excel,
    string_catalog.read_catalog,
    keyed_files.read_keyed,
    ooxml.read_docx,
    ooxml.read_pptx,
    opendocument.read_odt,
    opendocument.read_odp,
    epub.read_epub,
    markdown.read_markdown,
]
TRANSLATE: list[Callable[[Call], None]] = [cluster.translate_in_shards, translate_command.run]
CHECK_LINES: Callable[[str], None] = lines_command.check_lines
EVALUATE: list[Callable[[Evaluation], None]] = [
    evaluate_command.compare_translations,
    parsing.evaluate_trees,
]
RULES: Callable[[Rules, Sequence[Sequence[str]]], MoreRules] = more_rules.MoreRules
FIND_TERMS: Callable[[tuple[Term, ...], str], TermFinder] = glossary.open_glossary
SEARCH_TERMS: OpenGlossarySearch = searching.TermSearch
PREPARE_TYPED: PrepareTyped = typed.typed_texts
PREFIX_FILTER: Callable[[Vocabulary, Sentences, Sequence[int]], TokenFilter] = (
    prefixes.prefix_filter
)
HELPED_BY: Callable[
    [Tokenizer, Sequence[Guide], int | None],
    Callable[[Sequence[Seq2Seq], Tensor], ModelStepper],
] = nearest.helped_by
INFILL: Callable[[Searcher, Sentences, NBestLists], NBestLists] = infilling.infilled
GUIDED_LINES: Callable[
    [Iterator[str], Path | None, Path | None], tuple[Iterator[str], Iterator[Guide]]
] = guides_command.guided_lines
OPEN_MEMORY: Callable[[str, Sequence[Direction]], TranslationMemory] = opening_memory.open_memory
READ_GLOSSARY: Callable[[str, tuple[str, str]], list[Term]] = glossary.read_glossary
PAPER_BLEU: Callable[[str], Callable[[Sequence[str], Sequence[str]], float]] = paper_bleu.paper_bleu
INFO: Callable[[Path, RunConfig], list[Fact]] = opening.facts
TRAINING_SPEED: Callable[[Profile, RunConfig], None] = operations.print_training_speed
SEARCH_SPEED: Callable[[Profile, Sequence[ModelConfig]], None] = operations.print_search_speed
BACK_TRANSLATE: Callable[
    [Settings, Path, Sequence[str], Path | None, Path | None, bool], Settings
] = back_translation.with_back_translations
LOW_RANK: Callable[[nn.Module, int, int], None] = low_rank.use_low_rank
REMEMBER: Callable[[Settings, Path, Path, Sequence[str]], Settings] = remembering.with_remembered
EXTEND_IMPORTED: Callable[
    [Tokenizer, Collection[str], int, Sequence[str], Iterable[str]], Tokenizer
] = extending.extended
REMEMBER_DIRECTIONS: Callable[[Settings, Path, Path, Sequence[str], Sequence[str]], Prepared] = (
    remembering.remembered_directions
)
FAULTS_OF_CORPUS: Callable[[Sequence[TextColumn], Sequence[Origin]], Iterator[str]] = (
    corpus_faults.faults_of_corpus
)
MAKE_COPIES: list[MakeCopies] = [copying.pairs_with_matches, annotating.pairs_with_terms]
READ_RECORDS: Callable[[Any, tuple[str, str], str], tuple[tuple[str, str], Iterator[Pair]]] = (
    records.read_records
)
LEARN_WORDS: Callable[[Sequence[Collection[str]], int, str], bytes] = words.learn
VOCABULARY_OF_WORDS: Callable[[bytes, int], Vocabulary] = words.WordVocabulary
OPTIONS: list[object] = [
    LEARN_WORDS,
    VOCABULARY_OF_WORDS,
    READ_RECORDS,
    *MAKE_COPIES,
    EXTEND_IMPORTED,
    FAULTS_OF_CORPUS,
    LOW_RANK,
    REMEMBER,
    REMEMBER_DIRECTIONS,
    *TRANSLATE,
    CHECK_LINES,
    *EVALUATE,
    RULES,
    FIND_TERMS,
    PREPARE_TYPED,
    PREFIX_FILTER,
    HELPED_BY,
    INFILL,
    GUIDED_LINES,
    OPEN_MEMORY,
    SEARCH_TERMS,
    READ_GLOSSARY,
    PAPER_BLEU,
    INFO,
    TRAINING_SPEED,
    SEARCH_SPEED,
    BACK_TRANSLATE,
    cluster.prepare_in_shards,
]
