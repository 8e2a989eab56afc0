# SPDX-License-Identifier: Apache-2.0
"""What proof-diff.sh says, of recordings that are there: judge.py PROFCTL FOLDER ROUNDS.

Where nothing changed, the rate of false discoveries is that of comparisons with any sure change. Splits of the same
recordings are drawn from a fixed seed, none twice; they overlap, so their number is no number of independent trials.
How small a change is found depends on how much of a CPU the programs had: with less than 90 % of one that is shown and
not judged, and the status is 77. What must never be, or at most at the stated rate, is judged under any load."""
import concurrent.futures, json, os, random, statistics, subprocess, sys

PROFCTL, FOLDER, ROUNDS = sys.argv[1], sys.argv[2], int(sys.argv[3])
RATE, SPLITS, SIDES = 0.05, 40, [side for side in (3, 5) if 2 * side <= ROUNDS]
SLOWER, WHAT, PART = (0.5, 1, 2, 3, 5, 8), "chore_three", 0.3
PROGRAMS = ("chores", "python", "cc1")
FEW = 10  # samples, of both sides
QUIET = 0.9
draw = random.Random(1)
failures, unjudged, single_rows = [], [], 0


def path(program, number):
    return os.path.join(FOLDER, f"{program}-{number}.fxt")


def work_of(name):
    with open(name.replace(".fxt", ".out"), encoding="utf-8") as file:
        return next(line.split()[1] for line in file if len(line.split()) == 2)


def compare(task):
    before, after, per = task
    if per == "work":
        per = ",".join(work_of(name) for name in before + after)
    done = subprocess.run([PROFCTL, "diff", *before, "--with", *after, "--json", "-n", "0", "--per", per], capture_output=True, check=True)
    return json.loads(done.stdout)


def look_at_few(result):
    """Notes rows with few samples that are called sure, and how many have one against none."""
    global single_rows
    for row in result["rows"]:
        for part in (row["self"], row["total"]):
            counts = part["samples_before"], part["samples_after"]
            single_rows += sorted(counts) == [0, 1]
            if sum(counts) < FEW and part["sure"]:
                failures.append(f"{row['name']} is sure with {counts[0]} and {counts[1]} samples")


def compare_all(tasks):
    with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        results = list(pool.map(compare, tasks))
    for result in results:
        look_at_few(result)
    return results


def splits(program, side):
    """Pairs of two sides of so many recordings each, without any in common, and no pair twice."""
    found = {}
    for _ in range(100 * SPLITS):
        numbers = draw.sample(range(1, ROUNDS + 1), 2 * side)
        pair = tuple(sorted(numbers[:side])), tuple(sorted(numbers[side:]))
        found.setdefault(tuple(sorted(pair)), pair)
        if len(found) == SPLITS:
            break
    return [tuple([path(program, n) for n in numbers] for numbers in pair) for pair in found.values()]


def row_of(result, name):
    return next(row for row in result["rows"] if row["name"] == name)["self"]


def expect(is_so, text):
    if not is_so:
        failures.append(text)
    print(f"{'ok  ' if is_so else 'FAIL'} {text}", flush=True)


def expect_quiet(is_so, text):
    """Of what depends on how much of a CPU the programs had."""
    if is_quiet:
        expect(is_so, text)
    else:
        unjudged.append(text)
        print(f"{'(ok)' if is_so else '(no)'} not judged: {text}", flush=True)


def part_of_cpu():
    """How much of a CPU the loop had, that would take a whole one."""
    parts = []
    for number in range(1, ROUNDS + 1):
        recording = compare(([path("chores", number)], [path("chores", number)], "cpu"))["before"]["recordings"][0]
        parts.append(recording["samples"] * recording["period_ns"] / 1e9 / recording["length_s"])
    return statistics.median(parts)


def has_large(result):
    return any(row[part]["sure"] and row[part]["change"] > 0.03 * result["before"]["whole"]
               for row in result["rows"] for part in ("self", "total"))


def false_alarms():
    print(f"\n{'program':8} {'a side':>6} {'per':>5} {'tests':>6} {'with alarms':>12} {'above 3 %':>10} {'runs differ':>12}")
    all_alarms = all_results = 0
    for program in PROGRAMS:
        for side, per in [(side, per) for side in SIDES for per in ("cpu", "work")]:
            results = compare_all([(*pair, per) for pair in splits(program, side)])
            alarms = sum(result["sure"] > 0 for result in results)
            differ = statistics.median(result["runs_differ"] for result in results)
            tests = statistics.median(result["tests"] for result in results)
            print(f"{program:8} {side:6} {per:>5} {tests:6.0f} {alarms:5} of {len(results):3} {sum(map(has_large, results)):10} "
                  f"{100 * differ:10.1f} %", flush=True)
            names = sorted({row["name"] for result in results for row in result["rows"] if row["self"]["sure"] or row["total"]["sure"]})
            if names:
                print(f"         {' '.join(names[:8])}")
            # More than 5 of 40 come in 1 of 70 cases at a rate of 5 %.
            if alarms > len(results) / 8:
                expect(False, f"{program}: {alarms} of {len(results)} are false alarms, {side} recordings a side, per {per}")
            all_alarms += alarms
            all_results += len(results)
    expect(all_alarms <= RATE * all_results, f"false alarms in {all_alarms} of {all_results} comparisons, where {RATE * all_results:.0f} are allowed")


def few_recordings():
    """With one or two a side nothing is sure, neither where nothing changed nor of the largest change."""
    for side in (1, 2):
        tasks = [(*pair, "cpu") for program in PROGRAMS for pair in splits(program, side)[:10]]
        tasks.append(([path("chores", n) for n in range(1, side + 1)], [path(f"slower-{SLOWER[-1]}", n) for n in range(1, side + 1)], "cpu"))
        results = compare_all(tasks)
        expect(not any(result["judged"] or result["sure"] for result in results),
               f"nothing is sure in {len(results)} comparisons with {side} a side")


def found_of(results):
    return [row_of(result, WHAT)["sure"] and row_of(result, WHAT)["change"] > 0 for result in results]


def change_of(percent):
    """What a function's part becomes when it takes so much longer, as a part of what it was."""
    slower = percent / 100
    return (1 + slower) / (1 + PART * slower) - 1


def found_from(rates):
    """The change that is found in 4 of 5, between those that were made; None: none is."""
    points = sorted((change_of(percent), rate) for percent, rate in rates.items())
    for (low, low_rate), (high, high_rate) in zip(points, points[1:]):
        if low_rate < 0.8 <= high_rate:
            return low + (high - low) * (0.8 - low_rate) / (high_rate - low_rate)
    return None


def visible(side):
    """Says which slow-downs are found, and whether that is what is said to be visible."""
    numbers = range(1, ROUNDS // 2 + 1)
    if side > len(numbers):
        return
    stated = [row_of(result, WHAT) for result in compare_all([(*pair, "cpu") for pair in splits("chores", side)])]
    stated = statistics.median(row["visible"] / row["before"] for row in stated)
    rates = {0: 0.0}
    for percent in SLOWER:
        tasks = [([path("chores", n) for n in draw.sample(range(1, ROUNDS + 1), side)],
                  [path(f"slower-{percent}", n) for n in draw.sample(numbers, side)], "cpu") for _ in range(SPLITS)]
        found = found_of(compare_all(tasks))
        rates[percent] = sum(found) / len(found)
    print(f"\n{side} a side: {WHAT} changes visibly from {100 * stated:.2f} % on, it is said; "
          + ", ".join(f"slower by {percent} % is found in {100 * rates[percent]:.0f} %" for percent in SLOWER), flush=True)
    real = found_from(rates)
    if real is None:
        expect_quiet(False, f"no slow-down is found in 4 of 5, {side} a side")
    else:
        expect_quiet(1 / 1.5 <= stated / real <= 1.5,
                     f"found in 4 of 5 from {100 * real:.2f} % on, {side} a side: what is said is {stated / real:.2f} of it")


def slower_function():
    side = SIDES[0]
    tasks = [([path("chores", (n + i) % ROUNDS + 1) for i in range(side)],
              [path("slower-5", (n + i) % (ROUNDS // 2) + 1) for i in range(side)], "cpu") for n in range(10)]
    found = sum(found_of(compare_all(tasks)))
    expect_quiet(found >= 9, f"a function that is slower by 5 %: found in {found} of 10, {side} a side")


of_cpu = part_of_cpu()
is_quiet = of_cpu >= QUIET
print(f"{ROUNDS} recordings of each program; the loop had {100 * of_cpu:.0f} % of a CPU" + ("" if is_quiet else ": other programs ran"))
slower_function()
for of_side in SIDES:
    visible(of_side)
few_recordings()
false_alarms()
expect(single_rows > 0, f"{single_rows} rows have one sample against none")
print(f"\n{'FAIL: ' + '; '.join(failures) if failures else 'not proved, for want of a quiet machine: ' + '; '.join(unjudged) if unjudged else 'proved'}")
sys.exit(1 if failures else 77 if unjudged else 0)
