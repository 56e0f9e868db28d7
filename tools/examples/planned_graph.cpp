// Computes a small neural network three times: with the pool, with an arena that was measured
// before, and with a plan. Prints the memory that each needs; the results are equal. Run it with
// --help.

#include <tensorpool/arena.hpp>
#include <tensorpool/memory_plan.hpp>
#include <tensorpool/memory_pool.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <exception>
#include <string>
#include <vector>

namespace {

using namespace tensorpool;

constexpr std::size_t rows = 48;
constexpr std::size_t width = 64;
constexpr std::size_t layers = 4;

constexpr const char* help =
    "usage: planned_graph\n"
    "\n"
    "Computes a network of four layers with memory from the pool, from an arena and from a\n"
    "plan, and prints the peak of each. The status is 1 if the results differ.\n";

enum class Kind { input, product, rectified, sum };

/// Computes one tensor, which has the operator's number, from those of earlier operators.
struct Operator {
    Kind kind;
    std::size_t columns;
    std::vector<std::size_t> read = {};
    std::size_t bytes() const noexcept { return rows * columns * sizeof(float); }
};
using Graph = std::vector<Operator>;
using Tensors = std::vector<float*>;  // by operator

/// Each layer adds to the state what two products and a rectifier make of it.
Graph make_graph() {
    Graph graph = {{Kind::input, width}};
    for (std::size_t layer = 0; layer < layers; ++layer) {
        const std::size_t state = graph.size() - 1;
        graph.push_back({Kind::product, 4 * width, {state}});
        graph.push_back({Kind::rectified, 4 * width, {state + 1}});
        graph.push_back({Kind::product, width, {state + 2}});
        graph.push_back({Kind::sum, width, {state, state + 3}});
    }
    return graph;
}

/// A tensor lives from the operator that computes it until after the last one that reads it, so
/// that the output of that operator lies elsewhere. The result lives to the end.
std::vector<TensorLifetime> lifetimes_of(const Graph& graph) {
    const auto end = static_cast<std::int64_t>(graph.size()) + 1;
    std::vector<TensorLifetime> lifetimes;
    for (const Operator& op : graph) {
        const auto time = static_cast<std::int64_t>(lifetimes.size());
        for (const std::size_t read : op.read) lifetimes[read].end = time + 1;
        lifetimes.push_back({time, end, op.bytes(), 64});
    }
    return lifetimes;
}

/// Pseudorandom weights, the same on every machine. They are computed where they are used, because
/// they are not part of the plan.
float weight(std::size_t seed, std::size_t row, std::size_t column) noexcept {
    std::uint64_t mixed = (seed << 40 ^ row << 20 ^ column) * 0x9e3779b97f4a7c15;
    mixed ^= mixed >> 31;
    return (static_cast<float>(mixed % 2001) - 1000) / 8000;
}

void compute(const Graph& graph, std::size_t number, const Tensors& tensors) {
    const Operator& op = graph[number];
    const auto read = [&](std::size_t input) { return tensors[op.read[input]]; };
    for (std::size_t i = 0; i < rows * op.columns; ++i) {
        const std::size_t row = i / op.columns;
        const std::size_t column = i % op.columns;
        float made = op.kind == Kind::input ? 8 * weight(0, row, column) : 0;
        if (op.kind == Kind::rectified) made = std::max(read(0)[i], 0.0f);
        if (op.kind == Kind::sum) made = read(0)[i] + read(1)[i];
        if (op.kind == Kind::product) {
            const std::size_t inner = graph[op.read[0]].columns;
            for (std::size_t k = 0; k < inner; ++k) {
                made += read(0)[row * inner + k] * weight(number, k, column);
            }
        }
        tensors[number][i] = made;
    }
}

struct Run {
    std::size_t peak_bytes = 0;
    std::vector<float> result;
};

/// Allocates each tensor when it is computed, and frees it after its last use. The peak is of the
/// pool's blocks, which are rounded up.
Run with_pool(const Graph& graph) {
    PoolOptions options;
    options.name = "planned_graph";
    MemoryPool pool(options);
    const std::vector<TensorLifetime> lifetimes = lifetimes_of(graph);
    Tensors tensors(graph.size());
    Run run;
    for (std::size_t step = 0; step < graph.size(); ++step) {
        tensors[step] = static_cast<float*>(pool.allocate(graph[step].bytes()));
        run.peak_bytes = std::max(run.peak_bytes, pool.get_total_allocated());
        compute(graph, step, tensors);
        for (std::size_t i = 0; i <= step; ++i) {
            const bool ends = lifetimes[i].end == static_cast<std::int64_t>(step) + 1;
            if (ends) pool.deallocate(tensors[i]);
        }
    }
    run.result.assign(tensors.back(), tensors.back() + rows * width);
    pool.deallocate(tensors.back());
    return run;
}

/// Allocates all tensors one after the other: an arena frees nothing before the end.
Tensors allocate_all(const Graph& graph, Arena& arena) {
    Tensors tensors;
    for (const Operator& op : graph) {
        tensors.push_back(static_cast<float*>(arena.allocate(op.bytes())));
    }
    return tensors;
}

Run compute_in(const Graph& graph, const Tensors& tensors, const Arena& arena) {
    for (std::size_t step = 0; step < graph.size(); ++step) compute(graph, step, tensors);
    return {arena.peak(), {tensors.back(), tensors.back() + rows * width}};
}

Arena arena_of(std::size_t bytes) {
    ArenaOptions options;
    options.name = "planned_graph";
    options.initial_capacity = bytes;
    options.max_capacity = bytes;
    return Arena(options);
}

Run with_arena(const Graph& graph) {
    Arena measuring = Arena::measuring();
    (void)allocate_all(graph, measuring);
    Arena arena = arena_of(measuring.peak());
    const Tensors tensors = allocate_all(graph, arena);
    return compute_in(graph, tensors, arena);
}

/// One block of the arena, with each tensor at its offset in the plan.
Run with_plan(const Graph& graph, const MemoryPlan& plan) {
    Arena arena = arena_of(plan.peak_bytes);
    auto* const memory = static_cast<std::byte*>(arena.allocate(plan.peak_bytes));
    Tensors tensors;
    for (const std::uint64_t offset : plan.offsets) {
        tensors.push_back(reinterpret_cast<float*>(memory + offset));
    }
    return compute_in(graph, tensors, arena);
}

void print(const char* how, const Run& run) {
    std::printf("%-8s %9zu bytes\n", how, run.peak_bytes);
}

int run() {
    const Graph graph = make_graph();
    const std::vector<TensorLifetime> lifetimes = lifetimes_of(graph);
    const MemoryPlan plan = plan_memory(lifetimes);
    validate(lifetimes, plan);
    const Run pool = with_pool(graph);
    const Run arena = with_arena(graph);
    const Run planned = with_plan(graph, plan);
    std::printf("%zu tensors; maximum bytes alive at once: %llu\n", graph.size(),
                static_cast<unsigned long long>(plan.lower_bound_bytes));
    print("arena", arena);
    print("pool", pool);
    print("plan", planned);
    const bool equal = pool.result == arena.result && pool.result == planned.result;
    std::printf("results: %s\n", equal ? "equal" : "different");
    return equal ? 0 : 1;
}

}  // namespace

int main(int count, char** arguments) try {
    if (count == 1) return run();
    std::fputs(help, std::string(arguments[1]) == "--help" ? stdout : stderr);
    return std::string(arguments[1]) == "--help" ? 0 : 2;
} catch (const std::exception& error) {
    std::fprintf(stderr, "planned_graph: %s\n", error.what());
    return 1;
}
