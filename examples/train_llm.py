# Copyright 2026 The ms_ops_transformer authors. SPDX-License-Identifier: Apache-2.0
"""Trains a small language model on the sources of the Python standard library, then compares it with its composed twin.

python examples/train_llm.py                       # tiny, about three minutes on two cores
python examples/train_llm.py --config small        # 32 million parameters
python examples/train_llm.py --resume runs/tiny    # goes on from the newest checkpoint, exactly
python examples/train_llm.py --compare-only        # the table alone
"""

import argparse
import importlib.util
import math
import os
import signal
import sys
import time

try:
    import yaml  # noqa: F401  for the run files
    from tqdm import tqdm  # disable=None: no bar where stderr is no terminal
except ImportError as error:
    sys.exit(f"train_llm.py: error: {error.name} is missing: pip install '.[examples]'")

_HERE = os.path.dirname(os.path.abspath(__file__))
_INTERRUPTED = 130
_SECONDS_PER_LINE = 30  # of progress, where there is no bar


def _positive(text):
    value = int(text)
    if value < 1:
        raise argparse.ArgumentTypeError(f"must be at least 1, but got {value}")
    return value


def parse(argv):
    """The command line, checked as far as it can be without reading files."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    parser.add_argument("--config", help="tiny, small, or the path of a YAML file (default: tiny)")
    parser.add_argument(
        "--mode", choices=("graph", "pynative"), default="graph", help="execution mode (default: graph)"
    )
    parser.add_argument(
        "--model",
        choices=("fused", "composed"),
        default="fused",
        help="operators of this library, or of MindSpore (default: fused)",
    )
    parser.add_argument("--steps", type=_positive, help="updates in all")
    parser.add_argument("--batch-size", type=_positive, help="sequences per update")
    parser.add_argument("--lr", type=float, help="highest learning rate")
    parser.add_argument("--seed", type=int, help="of weights and data order")
    parser.add_argument("--eval-every", type=_positive, help="steps between validations")
    parser.add_argument("--save-every", type=_positive, help="steps between checkpoints")
    parser.add_argument("--text", metavar="DIR", help="train on the .py, .txt and .md files of a folder instead")
    parser.add_argument("--output", metavar="DIR", help="folder of the run (default: runs/NAME, numbered when taken)")
    parser.add_argument("--resume", metavar="DIR", help="go on with the run in this folder")
    parser.add_argument(
        "--compare-steps", type=_positive, default=8, help="steps per model in the comparison (default: 8)"
    )
    parser.add_argument("--no-compare", action="store_true", help="leave the comparison out")
    parser.add_argument("--compare-only", action="store_true", help="only the comparison")
    parser.add_argument("--serve", choices=("fused", "composed"), help=argparse.SUPPRESS)
    args = parser.parse_args(argv)
    if args.resume and args.output:
        parser.error("--resume names the folder of the run: leave --output out")
    if args.resume and args.config:
        parser.error("--resume takes the configuration of the run: leave --config out")
    args.config = args.config or "tiny"
    if args.no_compare and args.compare_only:
        parser.error("--no-compare and --compare-only exclude each other")
    if args.resume and not os.path.isfile(os.path.join(args.resume, "run.yaml")):
        parser.error(f"--resume: '{args.resume}' is not the folder of a run (it has no run.yaml)")
    if not args.resume and not os.path.isfile(_config_path(args.config)):
        sizes = ", ".join(sorted(name[:-5] for name in os.listdir(os.path.join(_HERE, "configs"))))
        parser.error(f"--config: '{args.config}' is neither a file nor one of {sizes}")
    if args.output and os.path.isdir(args.output) and any(n.startswith("step-") for n in os.listdir(args.output)):
        parser.error(f"--output: '{args.output}' already holds checkpoints; --resume goes on with them")
    return args


def _config_path(name):
    path = os.path.join(_HERE, "configs", f"{name}.yaml")
    return path if os.path.isfile(path) else name


def _output(args):
    """Folder of the run: as given, or runs/NAME with a number when that is taken."""
    if args.resume or args.output:
        return args.resume or args.output
    base = os.path.join("runs", os.path.splitext(os.path.basename(args.config))[0])
    path, number = base, 1
    while os.path.exists(path):
        number += 1
        path = f"{base}-{number}"
    return path


def _settings(args):
    from llm.settings import Settings

    path = os.path.join(args.resume, "run.yaml") if args.resume else _config_path(args.config)
    settings = Settings.from_yaml(
        path,
        text=args.text if not args.resume else None,
        steps=args.steps,
        batch_size=args.batch_size,
        learning_rate=args.lr,
        seed=args.seed,
        eval_every=args.eval_every,
        save_every=args.save_every,
    )
    if args.resume and args.text and os.path.abspath(args.text) != settings.text:
        raise ValueError(
            f"--text: the run was trained on {settings.text or 'the Python standard library'}, but got "
            f"{os.path.abspath(args.text)}."
        )
    return settings


def _write_settings(folder, settings):
    os.makedirs(folder, exist_ok=True)
    temporary = os.path.join(folder, f"run.yaml.{os.getpid()}.tmp")
    with open(temporary, "w", encoding="utf-8") as file:
        file.write(settings.to_yaml())
    os.replace(temporary, os.path.join(folder, "run.yaml"))


def _corpus(settings, log):
    from llm.data import Corpus

    corpus = Corpus(os.path.join("runs", "text"), settings.tokenizer, settings.model.vocab_size, settings.text, log)
    log(f"{len(corpus.train):,} training tokens, {len(corpus.valid):,} validation tokens")
    return corpus


def _batches(settings, tokens, position=0):
    from llm.data import Batches

    return Batches(tokens, settings.model.seq_length, settings.batch_size, settings.seed, position)


class _Interrupt:
    """The first Ctrl-C asks for the end of the current step, the second one ends at once.

    MindSpore turns a SIGINT that arrives inside one of its calls into a SIGTERM, so both are handled.
    """

    def __init__(self):
        self.asked = False

    def __enter__(self):
        self.previous = {number: signal.signal(number, self._handle) for number in (signal.SIGINT, signal.SIGTERM)}
        return self

    def __exit__(self, *_):
        for number, handler in self.previous.items():
            signal.signal(number, handler)

    def _handle(self, *_):
        if self.asked:
            raise KeyboardInterrupt
        self.asked = True
        tqdm.write("stopping after this step (Ctrl-C again: at once)", file=sys.stderr)


def train(args, settings, folder):
    """The run itself; returns False when it was interrupted."""
    from llm import checkpoint
    from llm.compare import peak_memory
    from llm.training import Trainer

    os.makedirs(folder, exist_ok=True)
    checkpoint.remove_leftovers(folder)
    corpus = _corpus(settings, log=lambda text: print(text, flush=True))
    trainer = Trainer(settings, args.mode, fused=args.model == "fused")
    step, position = 0, 0
    found = checkpoint.checkpoints(folder)
    if args.resume and found:
        state = checkpoint.load(found[-1][1], trainer)
        if (state["seed"], state["batch_size"]) != (settings.seed, settings.batch_size):
            raise ValueError(
                f"the checkpoint was made with seed {state['seed']} and batch size {state['batch_size']}, but got "
                f"{settings.seed} and {settings.batch_size}."
            )
        if state["step"] >= settings.steps:
            raise ValueError(
                f"the run is finished: --steps must be larger than {state['step']} to go on, but got {settings.steps}."
            )
        step, position = state["step"], state["position"]
        print(f"resumed from {found[-1][1]}")
    _write_settings(folder, settings)  # a resumed run may have been given more steps
    parameters = sum(p.size for p in trainer.model.get_parameters())
    print(f"{args.model} model, {parameters / 1e6:.1f} million parameters, {args.mode} mode, run folder {folder}")
    batches = _batches(settings, corpus.train, position)
    held_out = _batches(settings, corpus.valid)
    validation = [held_out.next() for _ in range(settings.eval_batches)]
    tokens, seconds, loss, saved = settings.batch_size * settings.model.seq_length, [], float("nan"), step

    def save():
        return checkpoint.save(
            folder,
            trainer,
            {"step": step, "position": batches.position, "seed": settings.seed, "batch_size": settings.batch_size},
        )

    with (
        _Interrupt() as interrupt,
        tqdm(total=settings.steps, initial=step, unit="step", desc="training", file=sys.stderr, disable=None) as bar,
    ):
        shown = -math.inf

        def progress(text):
            nonlocal shown
            bar.set_postfix_str(text)
            if bar.disable and time.monotonic() - shown >= _SECONDS_PER_LINE:
                shown = time.monotonic()
                print(f"step {step} of {settings.steps}: {text}", file=sys.stderr, flush=True)

        progress("compiling the graph" if args.mode == "graph" else "starting")
        shown = -math.inf  # the first step is told at once
        while step < settings.steps and not interrupt.asked:
            begin = time.perf_counter()
            loss, norm = trainer.step(batches.next(), step)
            seconds.append(time.perf_counter() - begin)
            step += 1
            bar.update()
            speed = tokens * len(seconds[1:]) / sum(seconds[1:]) if len(seconds) > 1 else 0
            progress(f"loss {loss:.4f}, gradient {norm:.2f}, {speed:.0f} tokens/s")
            if step % settings.eval_every == 0 or step == settings.steps:
                valid = trainer.evaluate(validation)
                tqdm.write(f"step {step}: train loss {loss:.4f}, validation loss {valid:.4f}, {speed:.0f} tokens/s")
            if step % settings.save_every == 0 or step == settings.steps:
                save()
                saved = step
        if interrupt.asked and saved != step:
            save()
    if interrupt.asked and step < settings.steps:
        print(f"interrupted at step {step}; go on with: python {os.path.relpath(__file__)} --resume {folder}")
        return False
    print(f"finished {step} steps, peak memory {peak_memory() / 2**20:.0f} MB, weights in {folder}")
    return True


def serve(args, settings):
    """One model of the comparison: a step for each line read."""
    from llm.compare import serve as serve_steps
    from llm.training import Trainer

    answers, sys.stdout = sys.stdout, sys.stderr  # whatever else is printed must not mix with the answers
    corpus = _corpus(settings, log=lambda text: None)
    trainer = Trainer(settings, args.mode, fused=args.serve == "fused")
    batches = _batches(settings, corpus.train)

    def step(index):
        batch = batches.next()
        begin = time.perf_counter()
        loss, _ = trainer.step(batch, index)
        return loss, time.perf_counter() - begin

    serve_steps(step, answers)


def compare(args, settings, folder):
    """Prints the table."""
    from llm.compare import compare as compare_variants
    from llm.compare import table

    command = [
        sys.executable,
        os.path.abspath(__file__),
        "--config",
        os.path.join(folder, "run.yaml"),
        "--mode",
        args.mode,
    ]
    print("\nThe same model from this library's operators and composed of MindSpore's, one process each:", flush=True)
    result = compare_variants(command, args.compare_steps, settings.batch_size * settings.model.seq_length)
    print(table(result, settings.model.compute_dtype == "float32"), flush=True)


def _interrupt(*_):
    raise KeyboardInterrupt


def main(argv=None):
    """Returns the exit code."""
    args = parse(argv)
    signal.signal(signal.SIGTERM, _interrupt)
    if _HERE not in sys.path:
        sys.path.insert(0, _HERE)
    if importlib.util.find_spec("ms_ops_transformer") is None:  # not installed: from the source tree
        sys.path.insert(1, os.path.dirname(_HERE))
    try:
        settings = _settings(args)
        if args.serve:
            serve(args, settings)
            return 0
        folder = _output(args)
        if args.compare_only:
            _write_settings(folder, settings)
            _corpus(settings, log=print)
        elif not train(args, settings, folder):
            return _INTERRUPTED
        if not args.no_compare:
            compare(args, settings, folder)
    except (ValueError, TypeError, FloatingPointError, RuntimeError, OSError) as error:
        print(f"train_llm.py: error: {error}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        print("interrupted", file=sys.stderr)
        return _INTERRUPTED
    return 0


if __name__ == "__main__":
    sys.exit(main())
