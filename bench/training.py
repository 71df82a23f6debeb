"""Steps of private training: paygo beside PyTorch and Opacus, in turns on the same machine.

    python3 -m venv bench/.venv
    bench/.venv/bin/pip install -r bench/requirements.txt
    bench/.venv/bin/python bench/training.py                                      # the peers alone: 15 minutes, 10 GB
    bench/.venv/bin/python bench/training.py --ours "COMMAND {workload} {threads}" --json training.json
    bench/.venv/bin/python bench/training.py --only cnn --rounds 1 --seconds 0.5  # a quick look

COMMAND prints JSON lines {"workload": "mlp-784", "mode": "private" | "not private", "samples_per_second": N,
"noise_fraction": x} and others are passed over. Where it names {workload} it runs just before the peers' turn at that
workload, which is fairest; otherwise once in each round. {threads} is the number of threads.

A step is forward, backward and optimizer on rows in memory, with no data loader. The peers have fresh processes for each
measurement, and each allocator in turn: their large temporaries make it worth a factor. The bars take each peer at its
fastest allocator. Speeds are medians of the rounds, ratios medians of the ratios within a round. Before each measurement
a private mode shows, on a few rows, that it clips each row and that its noise has the size asked for.

It needs a quiet machine: a peer's threads wait for each other many times in a step, and one busy core can cost it a factor
of five. So a measurement during which other programs had some of the processors is repeated, and the report says how much
they had.
"""

import argparse
import ctypes.util
import json
import os
import platform
import resource
import shlex
import statistics
import subprocess
import sys
import time
import warnings

warnings.filterwarnings("ignore")

WORKLOADS = {
    "mlp-784": "MLP 784-1000-10, batch of 600",
    "mlp-60": "MLP 60-1000-10, batch of 600",
    "cnn": "the MNIST network of Opacus's example, 28×28, batch of 512",
    "regression": "logistic regression, 105 inputs, 2 classes, all 32,561 rows",
}
TORCH, DEFAULT = "PyTorch, not private", "Opacus hooks (default)"
# A layout of the weights that PyTorch's convolutions like better. Opacus 1.6 has none of it: hooks and ghost clipping then
# clip by wrong norms (`unfold2d` takes the rows to be contiguous; `check` finds it), and expanded weights raise an error.
LAST = "PyTorch, channels last, not private"
# The names of Opacus's modes.
MODES = {
    TORCH: None,
    LAST: None,
    DEFAULT: "hooks",
    "Opacus ghost clipping": "ghost",
    "Opacus functorch": "functorch",
    "Opacus expanded weights": "ew",
}
SYSTEM, TUNED = "system malloc", "glibc malloc, tuned"
CLIP, NOISE, RATE, BATCHES = 1.0, 1.0, 0.01, 4
# The share of the processors that other programs may have during a measurement.
QUIET = 0.05


# The peers' side, in a process of its own.


def network(workload):
    from torch import nn

    if workload == "cnn":
        return nn.Sequential(
            nn.Conv2d(1, 16, 8, stride=2, padding=3), nn.ReLU(), nn.MaxPool2d(2, 1),
            nn.Conv2d(16, 32, 4, stride=2), nn.ReLU(), nn.MaxPool2d(2, 1),
            nn.Flatten(), nn.Linear(512, 32), nn.ReLU(), nn.Linear(32, 10),
        )  # fmt: skip
    if workload == "regression":
        return nn.Linear(105, 2)
    return nn.Sequential(nn.Linear(784 if workload == "mlp-784" else 60, 1000), nn.ReLU(), nn.Linear(1000, 10))


def rows(workload, count):
    import torch

    shape = {"mlp-784": (784,), "mlp-60": (60,), "cnn": (1, 28, 28), "regression": (105,)}[workload]
    return torch.randn(count, *shape), torch.randint(2 if workload == "regression" else 10, (count,))


class Training:
    """A model with its optimizer, as Opacus's PrivacyEngine puts them together, less sampling and accounting."""

    def __init__(self, model, method, batch):
        import torch

        if method == LAST:
            model = model.to(memory_format=torch.channels_last)
        mode = MODES[method]
        self.optimizer, self.loss = torch.optim.SGD(model.parameters(), lr=RATE), torch.nn.CrossEntropyLoss()
        self.model, self.noise_seconds = model, 0.0
        if mode is None:
            return
        from opacus.grad_sample.utils import prepare_module
        from opacus.optimizers import get_optimizer_class
        from opacus.utils.fast_gradient_clipping_utils import DPLossFastGradientClipping

        ghost = mode == "ghost"
        self.model = prepare_module(model, mode, **({"max_grad_norm": CLIP} if ghost else {}))
        self.optimizer = get_optimizer_class("flat", False, mode)(
            self.optimizer, noise_multiplier=NOISE, max_grad_norm=CLIP, expected_batch_size=batch
        )
        if ghost:
            self.loss = DPLossFastGradientClipping(self.model, self.optimizer, self.loss)
        add_noise = self.optimizer.add_noise

        def timed_noise():
            start = time.perf_counter()
            add_noise()
            self.noise_seconds += time.perf_counter() - start

        self.optimizer.add_noise = timed_noise

    def step(self, inputs, labels):
        self.optimizer.zero_grad(set_to_none=True)
        self.loss(self.model(inputs), labels).backward()
        self.optimizer.step()


def check(workload, method):
    """A step on a few rows: the clipped sum against one made row by row, the noise, and that the weights take both."""
    import torch

    count, model = 8, network(workload)
    inputs, labels = rows(workload, count)
    # Some rows above the bound, some below, where the network allows it.
    inputs *= torch.logspace(-3, 1, count).view(-1, *[1] * (inputs.dim() - 1))
    parameters = list(model.parameters())
    expected, clipped = [torch.zeros_like(p) for p in parameters], 0
    for row in range(count):
        loss = torch.nn.functional.cross_entropy(model(inputs[row : row + 1]), labels[row : row + 1])
        gradient = torch.autograd.grad(loss, parameters)
        norm = sum(float((g**2).sum()) for g in gradient) ** 0.5
        clipped += norm > CLIP
        for total, g in zip(expected, gradient):
            total += g * min(1.0, CLIP / norm)
    assert clipped, "no row is long enough to be clipped"

    training = Training(model, method, count)
    noises = []
    for _ in range(2):
        before = [p.detach().clone() for p in parameters]
        training.step(inputs, labels)
        for p, old in zip(parameters, before):
            torch.testing.assert_close(p.detach(), old - RATE * p.grad, msg="the weights do not follow the noisy sum")
        noises.append(torch.cat([(p.grad * count - p.summed_grad).flatten() for p in parameters]))
        if len(noises) == 1:
            for p, total in zip(parameters, expected):
                torch.testing.assert_close(p.summed_grad, total, rtol=1e-3, atol=1e-4, msg="not the clipped sum")
    for noise in noises:
        size = float(noise.std()) / (NOISE * CLIP)
        assert abs(size - 1) < 5 / len(noise) ** 0.5, f"the noise is {size} times what it should be"
    correlation = float(torch.corrcoef(torch.stack(noises))[0, 1])
    assert abs(correlation) < 6 / len(noise) ** 0.5, "two steps share their noise"


def measure(workload, method, threads, seconds):
    import torch

    torch.set_num_threads(threads)
    torch.manual_seed(1)
    if MODES[method]:
        check(workload, method)
    batch = {"cnn": 512, "regression": 32561}.get(workload, 600)
    data = [rows(workload, batch) for _ in range(1 if workload == "regression" else BATCHES)]
    training = Training(network(workload), method, batch)

    def run(seconds, least):
        steps, start = 0, time.perf_counter()
        while steps < least or time.perf_counter() - start < seconds:
            training.step(*data[steps % len(data)])
            steps += 1
        return steps, time.perf_counter() - start

    run(seconds / 4, 2)
    training.noise_seconds = 0.0
    steps, taken = run(seconds, 3)
    assert all(bool(p.isfinite().all()) for p in training.model.parameters())
    answer = {"samples_per_second": steps * batch / taken, "steps": steps, "cpu_seconds": time.process_time()}
    return answer | ({"noise_fraction": training.noise_seconds / taken} if MODES[method] else {})


def work():
    """Answers requests, one JSON line each, by a fresh fork that has torch loaded and has computed nothing before."""
    import opacus.grad_sample.utils
    import opacus.utils.fast_gradient_clipping_utils
    import torch

    versions = {"torch": torch.__version__, "opacus": opacus.__version__, "isa": torch.backends.cpu.get_cpu_capability()}
    print(json.dumps(versions), flush=True)
    for line in sys.stdin:
        child = os.fork()
        if child:
            status = os.waitpid(child, 0)[1]
            if status:  # Such as for want of memory.
                print(json.dumps({"error": f"ended by signal {os.WTERMSIG(status)}"}), flush=True)
            continue
        try:
            answer = measure(**json.loads(line))
        except Exception as error:  # A mode that does not run here is reported, not hidden.
            answer = {"error": f"{type(error).__name__}: {error}"}
        print(json.dumps(answer), flush=True)
        os._exit(0)


# The side that asks.


def allocators(chosen, preload):
    """Each allocator's name and environment. The system's is measured always."""
    huge = str(2**36)
    known = {
        SYSTEM: {},
        TUNED: {"MALLOC_MMAP_MAX_": "0", "MALLOC_MMAP_THRESHOLD_": huge, "MALLOC_TRIM_THRESHOLD_": huge},
    }
    libraries = map(ctypes.util.find_library, ("jemalloc", "tcmalloc", "tcmalloc_minimal", "mimalloc"))
    for library in [*filter(None, libraries), *preload]:
        known[os.path.basename(library)] = {"LD_PRELOAD": library}
    return {name: known[name] for name in known if not chosen or name == SYSTEM or any(part in name for part in chosen)}


class Peer:
    def __init__(self, environment, threads):
        clean = {name: value for name, value in os.environ.items() if not name.startswith("MALLOC_") and name != "LD_PRELOAD"}
        counts = {"OMP_NUM_THREADS": str(threads), "MKL_NUM_THREADS": str(threads)}
        self.process = subprocess.Popen(
            [sys.executable, os.path.abspath(__file__), "--worker"],
            env=clean | counts | environment, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
        )  # fmt: skip
        self.versions = self.answer()

    def answer(self):
        line = self.process.stdout.readline()
        return json.loads(line) if line else {"error": "the process ended"}

    def ask(self, **request):
        self.process.stdin.write(json.dumps(request) + "\n")
        self.process.stdin.flush()
        watch, answer = Watch(), self.answer()
        return answer | {"others": watch.others(answer.get("cpu_seconds"))}

    def close(self):
        self.process.stdin.close()
        self.process.wait()


def busy():
    """Seconds that the processors have worked so far, for anyone; None where the system does not say."""
    try:
        with open("/proc/stat") as lines:
            user, nice, system, _, _, interrupts, soft = map(int, lines.readline().split()[1:8])
    except (OSError, ValueError):
        return None
    return (user + nice + system + interrupts + soft) / os.sysconf("SC_CLK_TCK")


class Watch:
    """The share of all processors that other programs had since it was made."""

    def __init__(self):
        self.busy, self.start = busy(), time.perf_counter()

    def others(self, cpu_seconds):
        if self.busy is None or cpu_seconds is None:
            return None
        return max(0.0, (busy() - self.busy - cpu_seconds) / (time.perf_counter() - self.start) / os.cpu_count())


def ours(command, **values):
    for name, value in values.items():
        command = command.replace("{" + name + "}", str(value))
    watch, before = Watch(), resource.getrusage(resource.RUSAGE_CHILDREN)
    lines = subprocess.run(shlex.split(command), check=True, stdout=subprocess.PIPE, text=True).stdout.splitlines()
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    others = watch.others(after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime)
    rows = [json.loads(line) for line in lines if line.startswith("{")]
    return [row | {"others": others} for row in rows if row.get("workload") in WORKLOADS]


def quietest(tries, attempt):
    """The rows of the first attempt on a quiet machine, or of the quietest of several."""
    best = None
    for _ in range(tries):
        rows = attempt()
        others = max((row["others"] or 0 for row in rows), default=0)
        if best is None or others < best[0]:
            best = others, rows
        if others <= QUIET:
            break
    return best[1]


def collect(options, known):
    results = []

    def add(row):
        results.append(row)
        speed = f"{row['samples_per_second']:,.0f}" if "error" not in row else row["error"].splitlines()[0]
        busy = f", others {100 * row['others']:.0f} %" if row["others"] else ""
        print(f"round {row['round'] + 1}: {row['workload']}, {row['method']}, {row['allocator']}: {speed}{busy}", file=sys.stderr)

    def add_ours(turn, **values):
        for row in quietest(options.tries, lambda: ours(options.ours, threads=options.threads, **values)):
            if row["workload"] in options.only:
                add(row | {"round": turn, "method": f"paygo, {row['mode']}", "allocator": "its own"})

    peers = {name: Peer(environment, options.threads) for name, environment in known.items()}
    each = options.ours and "{workload}" in options.ours
    for turn in range(options.rounds):
        if options.ours and not each:
            add_ours(turn)
        for workload in options.only:
            if each:
                add_ours(turn, workload=workload)
            for method in (method for method in options.mode if method != LAST or workload == "cnn"):
                for allocator, peer in peers.items():
                    request = {"workload": workload, "method": method, "threads": options.threads, "seconds": options.seconds}
                    [row] = quietest(options.tries, lambda: [peer.ask(**request)])
                    add({"round": turn, "workload": workload, "method": method, "allocator": allocator} | row)
    for peer in peers.values():
        peer.close()
    return results, next(iter(peers.values())).versions


class Results:
    def __init__(self, results):
        self.speeds, self.noise, self.failed = {}, {}, {}
        for row in results:
            key = row["workload"], row["method"], row["allocator"]
            if "error" in row:
                self.failed[key] = row["error"]
                continue
            self.speeds.setdefault(key, {})[row["round"]] = row["samples_per_second"]
            if row.get("noise_fraction") is not None:
                self.noise.setdefault(key, []).append(row["noise_fraction"])

    def median(self, key):
        return statistics.median(self.speeds[key].values())

    def fastest(self, workload, methods, allocator=None):
        """The key of the fastest of these methods, at its fastest allocator or a given one."""
        keys = [key for key in self.speeds if key[0] == workload and key[1] in methods and allocator in (None, key[2])]
        return max(keys, key=self.median, default=None)

    def ratio(self, one, other):
        """Median, least and greatest of the ratios within a round."""
        if one is None or other is None:
            return None
        ratios = [self.speeds[one][turn] / self.speeds[other][turn] for turn in self.speeds[one] if turn in self.speeds[other]]
        return (statistics.median(ratios), min(ratios), max(ratios)) if ratios else None


OPACUS = [method for method in MODES if MODES[method]]
PRIVATE, PLAIN = "paygo, private", "paygo, not private"
BARS = (
    *((workload, PRIVATE, [PLAIN], 0.9) for workload in WORKLOADS),
    ("mlp-784", PRIVATE, [TORCH], 1.0),
    ("mlp-60", PRIVATE, [TORCH], 1.0),
    ("cnn", PRIVATE, [TORCH], 2.0),
    ("cnn", PRIVATE, [LAST], 2.0),
    ("mlp-784", PRIVATE, OPACUS, 2.0),
    ("mlp-60", PRIVATE, OPACUS, 2.0),
    ("cnn", PRIVATE, OPACUS, 4.0),
    ("mlp-784", PRIVATE, [DEFAULT], 50.0),
)


def bars(results, only):
    for workload, mine, others, wanted in BARS:
        if workload not in only:
            continue
        base, name = results.fastest(workload, [mine]), "Opacus's best" if others == OPACUS else others[0]
        fast, system = results.fastest(workload, others), results.fastest(workload, others, SYSTEM)
        ratio, out_of_box = results.ratio(base, fast), results.ratio(base, system)
        verdict = "not measured" if ratio is None else "reached" if ratio[0] >= wanted else "not reached"
        yield {"workload": workload, "over": name, "beside": fast and fast[1:], "wanted": wanted, "ratio": ratio,
               "ratio_system_malloc": out_of_box, "verdict": verdict}  # fmt: skip


def times(ratio, spread=True):
    if ratio is None:
        return "–"
    middle, low, high = (f"{value:.3g}" if value < 100 else f"{value:.0f}" for value in ratio)
    return f"{middle}×" + (f" ({low} to {high})" if spread else "")


def cpu():
    try:
        with open("/proc/cpuinfo") as lines:
            return next(line.split(":", 1)[1].strip() for line in lines if line.startswith("model name"))
    except (OSError, StopIteration):
        return platform.processor()


def report(options, known, rows, versions):
    results = Results(rows)
    print("# Steps of private training, beside PyTorch and Opacus\n")
    print("Made by `bench/training.py` (its head says how to run it, and what is counted).")
    print(f"Machine: {cpu()}, {os.cpu_count()} cores, of them {options.threads} used.")
    software = f"PyTorch {versions['torch']} ({versions['isa']}), Opacus {versions['opacus']}, {' '.join(platform.libc_ver())}"
    print(f"Python {platform.python_version()}, {software}.")
    print(f"Medians of {options.rounds} rounds, {options.seconds:g} s for each measurement of a peer.")
    others = [row["others"] for row in rows if row.get("others") is not None]
    if others:
        median, worst = 100 * statistics.median(others), 100 * max(others)
        print(f"Other programs had {median:.0f} % of the processors in the median measurement, {worst:.0f} % in the worst.")
    print("\nAllocators:\n")
    for name, environment in known.items():
        settings = (f"`{key}={os.path.basename(value)}`" for key, value in environment.items())
        print(f"- {name}: " + (", ".join(settings) or "no setting"))
    for workload in options.only:
        print(f"\n## {workload}: {WORKLOADS[workload]}\n")
        keys = [key for key in results.speeds if key[0] == workload]
        mine = results.fastest(workload, [PRIVATE])
        print("| method | allocator | samples a second | least to most | of it noise | paygo private beside it |")
        print("| --- | --- | --- | --- | --- | --- |")
        for key in sorted(keys, key=lambda key: [PRIVATE, PLAIN, *MODES].index(key[1])):
            speeds, noise = results.speeds[key].values(), results.noise.get(key)
            cells = [*key[1:], f"{results.median(key):,.0f}", f"{min(speeds):,.0f} to {max(speeds):,.0f}",
                     f"{100 * statistics.median(noise):.1f} %" if noise else "–", times(results.ratio(mine, key))]  # fmt: skip
            print("| " + " | ".join(cells) + " |")
        for (_, method, allocator), error in ((key, error) for key, error in results.failed.items() if key[0] == workload):
            print(f"\n{method}, {allocator}, did not run: {error.splitlines()[0]}")
    judged = list(bars(results, options.only))
    if options.ours:
        print("\n## Goals for paygo private\n")
        print("| workload | beside | at its fastest: allocator | wanted | ratio | | with system malloc |")
        print("| --- | --- | --- | --- | --- | --- | --- |")
        for bar in judged:
            method, allocator = bar["beside"] or ("", "–")
            beside = bar["over"] if bar["over"] == method or not method else f"{bar['over']}: {method}"
            cells = [bar["workload"], beside, allocator, f"{bar['wanted']:g}×", times(bar["ratio"]), bar["verdict"],
                     times(bar["ratio_system_malloc"], False)]  # fmt: skip
            print("| " + " | ".join(cells) + " |")
        if others and statistics.median(others) > 2 * QUIET:
            print("\nThe machine was busy with other programs: these verdicts do not count.")
    return judged


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--ours", metavar="COMMAND", help="prints paygo's JSON lines; may name {workload} and {threads}")
    cores = len(os.sched_getaffinity(0))
    parser.add_argument("--threads", type=int, default=cores, help="for the peers and {threads}; default: all")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--seconds", type=float, default=2.0, help="for one measurement of a peer")
    parser.add_argument("--tries", type=int, default=3, help="at a measurement on a quiet machine; 1: take it as it is")
    parser.add_argument("--only", nargs="+", choices=WORKLOADS, default=list(WORKLOADS), metavar="WORKLOAD")
    parser.add_argument("--mode", nargs="+", default=[], metavar="PART", help="of PyTorch and Opacus's modes only these")
    parser.add_argument("--allocator", nargs="+", default=[], metavar="PART", help="of those found only these, and the system's")
    parser.add_argument("--preload", nargs="+", default=[], metavar="LIBRARY", help="further allocators, as for LD_PRELOAD")
    parser.add_argument("--json", metavar="FILE", help="every measurement, and the bars")
    parser.add_argument("--worker", action="store_true", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.worker:
        return work()
    options.mode = [method for method in MODES if not options.mode or any(part in method for part in options.mode)]
    known = allocators(options.allocator, options.preload)
    results, versions = collect(options, known)
    judged = report(options, known, results, versions)
    if options.json:
        facts = {"cpu": cpu(), "cores": os.cpu_count(), "threads": options.threads, "allocators": known} | versions
        with open(options.json, "w") as file:
            json.dump({"machine": facts, "measurements": results, "bars": judged}, file, indent=1)


if __name__ == "__main__":
    main()
