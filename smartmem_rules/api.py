"""The Python interface: optimize a model, run the plan, ask what became of it."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from smartmem_rules.arguments import (
    ARRAYS,
    CALLED,
    FILE,
    FILES,
    FLAG,
    MODEL,
    NAMES,
    OPTIONS,
    Kind,
    check_kinds,
    number,
    takes,
    text,
    whole,
)
from smartmem_rules.explanation.model_nodes import GRAPH
from smartmem_rules.graph.errors import GraphError
from smartmem_rules.limits import DEFAULT_LIMITS, Limits
from smartmem_rules.optimized import OptimizedPlan as OptimizedPlan, optimize_now
from smartmem_rules.planned import (
    DEFAULT_LEVEL as DEFAULT_LEVEL,
    PlanOptions as PlanOptions,
    plan_only as plan_only,
)
from smartmem_rules.quantization.options import LEAST, Options as QuantizeOptions
from smartmem_rules.runtime.devices import AUTO
from smartmem_rules.runtime.plan_file import load_plan, plan_files
from smartmem_rules.runtime.target import device_for
from smartmem_rules.simplification.options import FOLD_LIMIT, Options
from smartmem_rules.stages import Clock as Clock, Progress, Show
from smartmem_rules.torch_backend.detection import holds_tensors, is_program
from smartmem_rules.views.explained import (
    explain_model as explain_model,
    explain_pair as explain_pair,
    explain_rule_on as explain_rule_on,
)

if TYPE_CHECKING:
    from onnx import ModelProto

    from smartmem_rules.certificate.certify import Verdict
    from smartmem_rules.decoding.generator import Generator
    from smartmem_rules.graph.loading import Dims, ModelSource
    from smartmem_rules.graph.model import Graph
    from smartmem_rules.verification.results import Verification

_PROGRAM = Kind(f"{GRAPH.what}, or a model of PyTorch", lambda value: GRAPH.takes(value) or is_program(value))
_FILE_OR_FILES = Kind(f"{FILE.what}, or {FILES.what}", lambda value: FILE.takes(value) or FILES.takes(value))
_MORE = {"progress": CALLED.or_none(), "show": CALLED.or_none(), "certificate": FILE.or_none()}
_EXAMPLES = Kind("a tuple of tensors", lambda value: isinstance(value, tuple | list)).or_none()


@takes(path=_FILE_OR_FILES)
def load(path: str | Path | Sequence[str | Path], device: str = AUTO, debug: bool = False) -> OptimizedPlan:
    """A plan from a file, or of several plans of a model the one that is for the device.

    Args:
        path: a file, which any device may run that can; or several, or the folder of a bundle (`smartmem export`). Of
            these the first whose profile names the device is taken, else the first whose profile stands in for devices
            of its type; those of a folder come in the order of their names.
        device: `auto` is the device that a plan was made for, or else any.
        debug: the kernels check each read and write of device memory.

    Raises:
        PlanFileError: a file is no plan, damaged or of another version, or a folder has none.
        DeviceError: there is no such device.
        RunError: none of several plans is for the device; the message says why, plan by plan.

    A plan that tests itself does so when it is prepared; see `OptimizedPlan.prepare`.
    """
    if isinstance(path, (str, Path)) and not Path(path).is_dir():
        plan = load_plan(path)
        return OptimizedPlan(plan, device_for(plan.statistics.device, device), debug=debug)
    from smartmem_rules.runtime.fitting import fitting  # start-up time

    chosen = fitting([load_plan(one) for one in plan_files(path)], device)
    return OptimizedPlan(chosen.plan, chosen.device, debug=debug)


def optimize(
    graph: ModelSource | Graph | Any,
    rules: Sequence[str | Path] = (),
    device: str = AUTO,
    level: str = DEFAULT_LEVEL,
    dtype: str = "float32",
    memory: str = "auto",
    disable: Collection[str] = (),
    dims: Dims | None = None,
    progress: Progress | None = None,
    layout: str = "exact",
    debug: bool = False,
    show: Show | None = None,
    limits: Limits = DEFAULT_LIMITS,
    certificate: str | Path | None = None,
    example_inputs: Sequence[Any] | None = None,
    probes: bool = False,
    anew: bool = False,
) -> OptimizedPlan:
    """Make a plan of a model.

    Where the values of inputs decide shapes inside, there is no plan before the first run: then the result is a
    `SpecializedModel`, which makes one for each combination of these values.

    Args:
        graph: a path, the bytes of an ONNX file, a ModelProto, or an imported Graph; a `torch.nn.Module` in evaluation
            mode or a `torch.export.ExportedProgram` (docs/torch.md).
        rules: more rule files; their operators are tried before the built-in ones.
        device: `auto`, a part of a device's name, `PLATFORM:DEVICE` numbers, or the name of a device profile.
        level: which steps are taken: the name of a `level` block.
        dtype: the element type in which floats are stored: float32, float16 or bfloat16.
        memory: `auto` chooses by cost; `image` or `buffer` puts every tensor there if the device can.
        disable: names of rules that are left out.
        dims: extents of the model's symbolic dimensions; (least, greatest) makes a plan for all extents in between.
        layout: `exact` chooses the contiguous axes for the whole graph, `local` edge by edge.
        debug: the kernels check each read and write of device memory against the bounds of its tensor, and runs raise
            `BoundsError`; several times slower. A plan that is saved holds no checks; `load` takes `debug` too.
        show: called with each stage's name and the text form of its result (docs/reading-plans.md).
        limits: how large the model may be and how long this may take.
        certificate: a file in which every step from the model to the kernels is written, for `certify`.
        example_inputs: tensors that a `torch.nn.Module` is exported with; they may also stand second, before the rules.
        probes: the plan tests itself where it is first loaded on a device (docs/self_test.md); it takes more room.
        anew: the plan is made even where it has been kept, so that a trace shows how (docs/traces.md).

    Raises:
        WrongKernelError: the plan tests itself, and the device computes a kernel wrongly that nothing replaces.
        GraphError: the model is damaged or uses something that no rule covers.
        TorchError: a PyTorch model cannot be exported.
        CertificateFileError: the certificate cannot be written.
        LimitError: the model exceeds a limit.
        LanguageError: a rule file has errors.
        DeviceError: there is no such device.
        PlanError: no kernel can be planned for something.
        BuildError, RunError: the device refuses a kernel or has too little memory.
        ValueError: an argument is none of its choices.
        TypeError: arguments are of other types; the message names all of them.
    """
    if holds_tensors(rules):
        example_inputs, rules = rules, ()
    options: dict[str, Any] = {
        "rules": rules, "device": device, "level": level, "dtype": dtype, "memory": memory, "disable": disable,
        "layout": layout, "debug": debug, "limits": limits, "probes": probes, "anew": anew,
    }  # fmt: skip
    more: dict[str, Any] = {"progress": progress, "show": show, "certificate": certificate}
    check_kinds(
        {"graph": graph, **options, "dims": dims, **more, "example_inputs": example_inputs},
        {**OPTIONS, **_MORE, "graph": _PROGRAM, "example_inputs": _EXAMPLES},
    )
    if is_program(graph):
        from smartmem_rules.torch_backend.programs import optimize_program  # start-up time

        return optimize_program(graph, example_inputs, dims, **options, **more)
    try:
        return optimize_now(graph, dims=dims, **more, **options)
    except GraphError as error:
        if certificate is not None:
            raise  # a plan for each combination of values has no certificate
        from smartmem_rules.specialized import specialized_for  # start-up time

        made = specialized_for(error, graph, **options)
        if made is None:
            raise
        return made


@takes(model=MODEL, keep=NAMES, domains=NAMES, opset=whole(1).or_none(), fold_limit=whole(0), exact=FLAG)
def simplify(
    model: ModelSource,
    rules: Sequence[str | Path] = (),
    disable: Collection[str] = (),
    keep: Collection[str] = (),
    domains: Collection[str] = (),
    opset: int | None = None,
    fold_limit: int = FOLD_LIMIT,
    exact: bool = False,
) -> ModelProto:
    """The model with fewer nodes, by verified rules only; the model itself where nothing better is found.

    The result is compared with the model by ONNX Runtime on random inputs. `simplify.simplify.simplify_model` gives a
    report as well.

    Args:
        model: a path, the bytes of an ONNX file, or a ModelProto, which stays as it is.
        rules: more rule files; their rules are verified before they are used.
        disable: names of rules, families or `tag:WORD` that are left out.
        keep: names of nodes that stay as they are.
        domains: of operators that rules may use besides ONNX's own, such as `com.microsoft`.
        opset: the version of ONNX's operators that the model is brought to first.
        fold_limit: bytes of the largest constant that is computed beforehand and takes more than it saves.
        exact: only rules that keep every bit of every result.

    Raises:
        SimplifyError: the model cannot be simplified, or an option names nothing.
        CheckError: ONNX Runtime does not run the model.
        GraphError: the model is damaged.
        LimitError: the model exceeds a limit.
        LanguageError: a rule file has errors.
    """
    from smartmem_rules.simplification.simplify import simplify_model  # start-up time

    options = Options(
        rules=rules, disable=disable, keep=keep, domains=domains, opset=opset, fold_limit=fold_limit, exact=exact
    )
    return simplify_model(model, options)[0]


@takes(
    model=MODEL,
    weights=text("the name of a type"),
    block=whole(),
    form=text("the name of a form"),
    exclude=NAMES,
    least=whole(0),
    tables=FLAG,
)
def quantize(
    model: ModelSource,
    weights: str = "int4",
    block: int = 32,
    form: str = "matmulnbits",
    exclude: Collection[str] = (),
    least: int = LEAST,
    tables: bool = True,
) -> ModelProto:
    """The model whose products (MatMul, Gemm) and tables (Gather) have weights of few bits; all else stays as it is.

    `quantization.quantize.quantize_model` gives a report of what each product and each output loses as well.

    Args:
        model: a path, the bytes of an ONNX file, or a ModelProto, which stays as it is.
        weights: `int4` or `int8` (symmetric), `uint4` or `uint8` (with a zero point for each block).
        block: neighbouring weights of a column that share a scale; 0 for one scale for each column (only `qdq`).
        form: `matmulnbits`, ONNX Runtime's operators, or `qdq`, ONNX's DequantizeLinear in front of the product.
        exclude: names of nodes that stay as they are.
        least: products with fewer weights stay as they are.
        tables: whether tables of which rows are read (embeddings) are quantized as well; only as `matmulnbits`.

    Raises:
        QuantizeError: the model cannot be quantized so; the message says why.
        GraphError: the model is damaged.
    """
    from smartmem_rules.quantization.quantize import quantize_model  # start-up time

    options = QuantizeOptions(weights=weights, block=block, form=form, exclude=exclude, least=least, tables=tables)
    return quantize_model(model, options, None)[0]


def generate(
    model: ModelSource | Generator,
    prompts: Sequence[int] | Sequence[Sequence[int]],
    tokens: int = 128,
    temperature: float = 0.0,
    top_k: int = 0,
    top_p: float = 1.0,
    seed: int = 0,
    stop: Collection[int] = (),
    bound: int = 1024,
    block: int = 256,
    cache: str = "model",
    inputs: Mapping[str, object] | None = None,
    with_past: ModelSource | None = None,
    **options: Any,
) -> list[list[int]]:
    """The tokens with which a language model goes on, for each prompt; a stop token at the end included.

    For several calls make a `Generator`, which keeps its plans; `Generator.stream` gives one token after the other.

    Args:
        model: a path, the bytes of an ONNX file, a ModelProto or a `Generator`; with the inputs `past_key_values.*`
            and the outputs `present.*`, as transformers, optimum and ONNX Runtime name them (docs/generate.md).
        prompts: token numbers of one sequence, or of each of several that are generated as a batch.
        tokens: how many at most.
        temperature: by which logits are divided before one is drawn; 0 takes the greatest.
        top_k: only so many of the greatest logits are drawn from; 0 for all.
        top_p: only the fewest tokens are drawn from whose probabilities sum up to this.
        seed: of what is drawn.
        stop: tokens that end a sequence.
        bound: tokens of each sequence that the cache holds at most, those of the prompt included.
        block: tokens by which the cache grows.
        cache: `model` keeps keys and values in the model's own type, `int8` as integers, off by at most 1/254 of the
            largest magnitude of their row (docs/generate.md).
        inputs: an array for each further input of the model, which stays the same over the steps (Whisper's sounds).
        with_past: where two files are one model (optimum's `decoder_with_past_model.onnx`), the decoder behind the
            cache; `model` is then the one for prompts.
        options: `rules`, `device`, `level`, `dtype`, `disable` and `limits` of `optimize`.

    Raises:
        GenerateError: the model has no cache, two models do not belong together, or a prompt or an option cannot be
            used; nothing has run.
        GraphError, LanguageError, DeviceError, PlanError, BuildError, RunError: as `optimize`.
    """
    from smartmem_rules.decoding.generate import generate as generated  # start-up time

    check_kinds({"inputs": inputs, **options}, {**OPTIONS, "inputs": ARRAYS.or_none()})
    return generated(
        model, prompts, tokens, temperature, top_k, top_p, seed, stop, bound, block, cache, inputs, with_past,
        **options,
    )  # fmt: skip


@takes(graph=GRAPH, certificate=FILE)
def certify(
    graph: ModelSource | Graph, certificate: str | Path, rules: Sequence[str | Path] = (), dims: Dims | None = None
) -> Verdict:
    """Replay the certificate of a plan without the optimizer: each step by the rule base, each kernel by definitions.

    Args:
        graph: the model of which the plan is.
        certificate: the file that `optimize` wrote.
        rules: the rule files of the plan.
        dims: extents of the model's symbolic dimensions.

    Raises:
        Refused: something in the certificate does not hold.
        CertificateFileError: the file is no certificate.
        GraphError, LanguageError: the model or a rule file is bad.
    """
    from smartmem_rules.certificate.certify import certify as replayed  # start-up time
    from smartmem_rules.exchange.certificates import read_certificate  # start-up time
    from smartmem_rules.graph.importer import import_model  # start-up time
    from smartmem_rules.graph.model import Graph  # start-up time
    from smartmem_rules.rulebase.base import load_rules  # start-up time

    read = read_certificate(certificate)
    base = load_rules(rules)
    return replayed(graph if isinstance(graph, Graph) else import_model(graph, base, dims), base, read)


@takes(
    files=_FILE_OR_FILES,
    rule=text("the name of a rule or of a family").or_none(),
    prove=FLAG,
    budget=number("a number of seconds above 0", lambda value: value > 0),
    seed=whole(),
    trials=whole(1),
    jobs=whole(1).or_none(),
)
def verify(
    files: str | Path | Sequence[str | Path] = (),
    rule: str | None = None,
    prove: bool = False,
    budget: float = 60.0,
    seed: int = 1,
    trials: int = 200,
    jobs: int | None = None,
) -> Verification:
    """Judge rules: proved, tested, failed (with a counterexample), vacuous or unknown.

    Args:
        files: rule files, whose rules are judged together with the built-in ones; by default the built-in rules.
        rule: only the rule of this name.
        prove: also try proofs for all values (needs z3-solver).
        budget: seconds for one rule.
        seed: of all random choices.
        trials: comparisons for each rule.
        jobs: processes; by default one for each of up to eight cores.

    Raises:
        LanguageError: a file has errors, or there is no such rule.
    """
    from smartmem_rules.verification.run import verify as run  # start-up time

    return run([files] if isinstance(files, str | Path) else files, rule, prove, budget, seed, trials, jobs)
