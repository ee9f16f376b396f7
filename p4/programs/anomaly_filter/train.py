#!/usr/bin/env python3
"""Makes the model of anomaly_filter: synthetic flows, training, export to ONNX.

    pip install numpy==2.4.6 onnx==1.23.2
    ./train.py            writes anomaly_filter.onnx and vectors.txt beside this file
    ./train.py --check    trains, and compares with these files; writes nothing

Flows are drawn at random with a fixed seed: no recorded traffic is involved. Their features are
computed with the integer arithmetic of anomaly_filter.p4. The network has two hidden layers; its
weights are rounded, so that libraries which sum in another order export the same model.

vectors.txt has features and the expected class and score, by the forward pass in this file. Tests
compare the extern with it.
"""
import argparse
import pathlib
import sys

import numpy
import onnx
from onnx import TensorProto, helper, numpy_helper

HERE = pathlib.Path(__file__).resolve().parent
SEED = 44
FLOWS_PER_KIND = 600
PACKETS = 48
# The program asks for no score before this many packets.
FIRST_PACKETS = 8
HIDDEN = (16, 8)
EPOCHS = 200
RATE = 0.01
# Certainty costs: classes are taken as right with this probability, and weights decay.
CERTAINTY = 0.98
DECAY = 1e-3
# Weights are multiples of this.
GRID = 2.0**-10
# Scores are multiples of this, as in weir/externs.p4.
SCORE_ONE = 65536

# The features of features_t, in order, with their bits.
FEATURES = {
    "packets": 16,
    "length": 16,
    "mean_length": 16,
    "deviation": 16,
    "mean_gap": 24,
    "syns": 16,
    "resets": 16,
    "is_tcp": 1,
}

NORMAL, ANOMALOUS = 0, 1


def log_uniform(random, low, high, size):
    return numpy.exp(random.uniform(numpy.log(low), numpy.log(high), size))


def kinds(random):
    """For each kind of flow: its class, and lengths, gaps (µs), SYN, RST and TCP of its packets."""
    shape = (FLOWS_PER_KIND, PACKETS)
    none = numpy.zeros(shape, int)
    first = none.copy()
    first[:, 0] = 1
    every = none + 1

    def lengths(low, high, spread):
        centre = random.uniform(low, high, (FLOWS_PER_KIND, 1))
        return centre * (1 + spread * random.standard_normal(shape))

    def gaps(low, high, spread):
        centre = log_uniform(random, low, high, (FLOWS_PER_KIND, 1))
        return centre * numpy.exp(spread * random.standard_normal(shape))

    some = (random.random(shape) < random.uniform(0.3, 1, (FLOWS_PER_KIND, 1))).astype(int)
    last = none.copy()
    last[:, -1] = 1
    yield "bulk transfer", NORMAL, lengths(900, 1500, 0.15), gaps(60, 5e3, 1.0), first, last, every
    yield "acknowledgements", NORMAL, lengths(40, 80, 0.05), gaps(60, 1e4, 1.0), first, none, every
    yield "interactive", NORMAL, lengths(50, 300, 0.3), gaps(2e4, 1e6, 0.8), first, last, every
    yield "voice", NORMAL, lengths(100, 260, 0.02), gaps(1e4, 4e4, 0.2), none, none, none
    yield "queries", NORMAL, lengths(60, 400, 0.3), gaps(5e3, 5e6, 1.0), none, none, none
    yield "video", NORMAL, lengths(900, 1400, 0.2), gaps(100, 5e3, 0.6), none, none, none
    yield "SYN flood", ANOMALOUS, lengths(40, 60, 0.02), gaps(1, 1e3, 0.5), every, none, every
    yield "repeated SYN", ANOMALOUS, lengths(40, 60, 0.02), gaps(1e4, 3e6, 0.5), some, none, every
    yield "UDP flood", ANOMALOUS, lengths(40, 1500, 0.02), gaps(0.5, 15, 0.4), none, none, none
    yield "resets", ANOMALOUS, lengths(40, 60, 0.05), gaps(10, 1e6, 0.6), none, some, every
    yield "slow drip", ANOMALOUS, lengths(41, 44, 0.01), gaps(6e6, 1.6e7, 0.2), first, none, every


def saturated(values, name):
    return numpy.minimum(values, 2 ** FEATURES[name] - 1)


def features_of(lengths, gaps, syns, resets, is_tcp):
    """Features after each packet, as anomaly_filter.p4 computes them."""
    lengths = numpy.clip(numpy.rint(lengths), 28, 1500).astype(numpy.int64)
    gaps = saturated(numpy.maximum(numpy.rint(gaps), 0), "mean_gap").astype(numpy.int64)
    mean, deviation, gap = lengths[:, 0] * 8, lengths[:, 0] * 0, lengths[:, 0] * 0
    syn_count, reset_count = syns[:, 0], resets[:, 0]
    for number in range(1, lengths.shape[1] + 1):
        at = number - 1
        if number > 1:
            deviation = deviation - (deviation >> 3) + abs(lengths[:, at] - (mean >> 3))
            mean = mean - (mean >> 3) + lengths[:, at]
            gap = gaps[:, at] * 8 if number == 2 else gap - (gap >> 3) + gaps[:, at]
            syn_count = syn_count + syns[:, at]
            reset_count = reset_count + resets[:, at]
        packets = numpy.full_like(mean, number)
        columns = [packets, lengths[:, at], mean >> 3, deviation >> 3, gap >> 3, syn_count, reset_count, is_tcp[:, at]]
        if number >= FIRST_PACKETS:
            yield numpy.stack(columns, axis=1)


def data(random):
    """Features and classes, shuffled. Long flows are as frequent as short ones."""
    rows, classes = [], []
    for _, kind_class, *packets in kinds(random):
        for features in features_of(*packets):
            few = features[random.random(len(features)) < 0.1]
            rows.append(few)
            classes.append(numpy.full(len(few), kind_class))
    rows, classes = numpy.concatenate(rows), numpy.concatenate(classes)
    # A flow may have any number of packets: the counters of a steady one grow in proportion.
    age = numpy.rint(log_uniform(random, 1, 400, len(rows))).astype(numpy.int64)
    rows[:, 0] = saturated(rows[:, 0] * age, "packets")
    for column, name in ((5, "syns"), (6, "resets")):
        many = rows[:, column] > 1
        rows[many, column] = saturated(rows[many, column] * age[many], name)
    order = random.permutation(len(rows))
    return rows[order], classes[order]


def scaling(rows):
    logs = numpy.log(rows + 1.0)
    return on_grid(logs.mean(axis=0)), on_grid(logs.std(axis=0) + GRID)


def on_grid(values):
    return numpy.rint(values / GRID) * GRID


def forward(parameters, inputs):
    """Values of all layers; the last one has the probabilities of the classes."""
    layers = [inputs]
    for weights, bias in parameters[:-1]:
        layers.append(numpy.maximum(layers[-1] @ weights + bias, 0))
    weights, bias = parameters[-1]
    logits = layers[-1] @ weights + bias
    powers = numpy.exp(logits - logits.max(axis=1, keepdims=True))
    layers.append(powers / powers.sum(axis=1, keepdims=True))
    return layers


def gradients(parameters, layers, classes):
    wanted = numpy.full_like(layers[-1], 1 - CERTAINTY)
    wanted[numpy.arange(len(classes)), classes] = CERTAINTY
    delta = (layers[-1] - wanted) / len(classes)
    found = []
    for index in range(len(parameters) - 1, -1, -1):
        found.append((layers[index].T @ delta, delta.sum(axis=0)))
        if index > 0:
            delta = (delta @ parameters[index][0].T) * (layers[index] > 0)
    return found[::-1]


def train(random, inputs, classes):
    """Adam over all samples at once."""
    sizes = (inputs.shape[1], *HIDDEN, 2)
    parameters = [
        (random.standard_normal((above, below)) * numpy.sqrt(2 / above), numpy.zeros(below))
        for above, below in zip(sizes, sizes[1:])
    ]
    moments = [tuple((numpy.zeros_like(p), numpy.zeros_like(p)) for p in layer) for layer in parameters]
    for step in range(1, EPOCHS + 1):
        found = gradients(parameters, forward(parameters, inputs), classes)
        updated = []
        for layer, layer_gradients, layer_moments in zip(parameters, found, moments):
            changed = []
            for value, gradient, (first, second) in zip(layer, layer_gradients, layer_moments):
                first += 0.1 * (gradient - first)
                second += 0.001 * (gradient**2 - second)
                slope = (first / (1 - 0.9**step)) / (numpy.sqrt(second / (1 - 0.999**step)) + 1e-8)
                changed.append(value - RATE * (slope + DECAY * value))
            updated.append(tuple(changed))
        parameters = updated
    return [tuple(on_grid(value) for value in layer) for layer in parameters]


def export(parameters, mean, scale):
    """The model: normalisation is part of it, so that the switch passes plain numbers."""
    single = numpy.float32
    tensors = {"one": numpy.ones((1,), single), "mean": mean.astype(single), "scale": scale.astype(single)}
    nodes = [
        helper.make_node("Add", ["features", "one"], ["above_zero"]),
        helper.make_node("Log", ["above_zero"], ["logs"]),
        helper.make_node("Sub", ["logs", "mean"], ["centred"]),
        helper.make_node("Div", ["centred", "scale"], ["layer0"]),
    ]
    for index, (weights, bias) in enumerate(parameters):
        tensors[f"weights{index}"], tensors[f"bias{index}"] = weights.astype(single), bias.astype(single)
        is_last = index == len(parameters) - 1
        product = "logits" if is_last else f"product{index}"
        nodes.append(helper.make_node("Gemm", [f"layer{index}", f"weights{index}", f"bias{index}"], [product]))
        if is_last:
            nodes.append(helper.make_node("Softmax", [product], ["scores"], axis=1))
        else:
            nodes.append(helper.make_node("Relu", [product], [f"layer{index + 1}"]))
    graph = helper.make_graph(
        nodes,
        "anomaly_filter",
        [helper.make_tensor_value_info("features", TensorProto.FLOAT, [1, len(FEATURES)])],
        [helper.make_tensor_value_info("scores", TensorProto.FLOAT, [1, 2])],
        [numpy_helper.from_array(value, name) for name, value in tensors.items()],
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
    onnx.checker.check_model(model, full_check=True)
    return model.SerializeToString(deterministic=True)


def scores_of(parameters, mean, scale, rows):
    return forward(parameters, (numpy.log(rows + 1.0) - mean) / scale)[-1]


def vectors(rows, parameters, mean, scale):
    """Chosen features: samples, pairs of samples mixed, and the least and the greatest values."""
    greatest = [2**bits - 1 for bits in FEATURES.values()]
    mixed = (rows[:800] + rows[800:1600]) // 2
    scores = scores_of(parameters, mean, scale, mixed)[:, ANOMALOUS]
    undecided = mixed[(scores > 0.1) & (scores < 0.9)][:64]
    chosen = numpy.concatenate([rows[:64], undecided, [[0] * len(FEATURES)], [greatest], numpy.diag(greatest)])
    return chosen, scores_of(parameters, mean, scale, chosen)


def text_of(chosen, scores):
    lines = [
        "# Made by train.py: " + " ".join(FEATURES) + ", then the class and the scores of the classes",
        f"# in units of 1/{SCORE_ONE}, at most {SCORE_ONE - 1}.",
    ]
    for row, values in zip(chosen, scores):
        fixed = [min(round(float(value) * SCORE_ONE), SCORE_ONE - 1) for value in values]
        lines.append(" ".join(str(int(number)) for number in [*row, values.argmax(), *fixed]))
    return "\n".join(lines) + "\n"


def check(model, text):
    """Whether the files beside this one are those that were made now, up to rounding."""
    kept = onnx.load_from_string((HERE / "anomaly_filter.onnx").read_bytes())
    made = onnx.load_from_string(model)
    for old, new in zip(kept.graph.initializer, made.graph.initializer, strict=True):
        difference = numpy.abs(numpy_helper.to_array(old) - numpy_helper.to_array(new)).max()
        if old.name != new.name or difference > GRID:
            sys.exit(f"anomaly_filter.onnx: {old.name} differs by {difference}")
    old, new = (HERE / "vectors.txt").read_text(), text
    if len(old.splitlines()) != len(new.splitlines()):
        sys.exit("vectors.txt has another number of lines")
    for before, after in zip(old.splitlines()[2:], new.splitlines()[2:]):
        before, after = ([int(word) for word in line.split()] for line in (before, after))
        if before[:9] != after[:9] or max(abs(a - b) for a, b in zip(before, after)) > SCORE_ONE // 64:
            sys.exit(f"vectors.txt: expected {after}, found {before}")


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--check", action="store_true", help="compare with the files, and write nothing")
    arguments = parser.parse_args()
    random = numpy.random.Generator(numpy.random.PCG64(SEED))
    rows, classes = data(random)
    held_out = len(rows) // 5
    mean, scale = scaling(rows[held_out:])
    inputs = (numpy.log(rows[held_out:] + 1.0) - mean) / scale
    parameters = train(random, inputs, classes[held_out:])
    scores = scores_of(parameters, mean, scale, rows[:held_out])[:, ANOMALOUS]
    for_classes = {name: scores[classes[:held_out] == c] for name, c in (("normal", 0), ("anomalous", 1))}
    for name, of_class in for_classes.items():
        share = (of_class >= 0.5).mean()
        print(f"{name}: {len(of_class)} held-out samples, {100 * share:.2f} % of them found anomalous")
    model = export(parameters, mean, scale)
    text = text_of(*vectors(rows[:held_out], parameters, mean, scale))
    if arguments.check:
        check(model, text)
        print("the files are as this script makes them")
    else:
        (HERE / "anomaly_filter.onnx").write_bytes(model)
        (HERE / "vectors.txt").write_text(text)
        print(f"anomaly_filter.onnx: {len(model)} bytes")


if __name__ == "__main__":
    main()
