// Computes a small transformer three times: with the pool, with an arena that was measured before,
// and with a plan. Prints the memory that each needs; the results are equal. Run it with --help.

#include <tensorpool/arena.hpp>
#include <tensorpool/memory_plan.hpp>
#include <tensorpool/memory_pool.hpp>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <exception>
#include <functional>
#include <span>
#include <stdexcept>
#include <string>
#include <vector>

namespace {

using namespace tensorpool;

constexpr std::size_t tokens = 48;
constexpr std::size_t width = 64;
constexpr std::size_t hidden = 4 * width;
constexpr std::size_t layers = 4;
constexpr std::size_t alignment = 64;

constexpr const char* help =
    "usage: planned_graph\n"
    "\n"
    "Computes a transformer of four layers with memory from the pool, from an arena and\n"
    "from a plan, and prints the peak of each. The status is 1 if the results differ.\n";

using TensorNumber = std::size_t;

struct Tensor {
    std::size_t rows = 0;
    std::size_t columns = 0;
    std::size_t bytes() const noexcept { return rows * columns * sizeof(float); }
};

/// The addresses of a run's tensors.
struct Addresses {
    std::vector<float*> of;  // indexed by tensor
};

/// The operators in execution order. Each computes one tensor from others.
class Graph {
public:
    struct Operator {
        TensorNumber made;
        std::vector<TensorNumber> read;
        std::function<void(const Addresses&)> compute;
    };

    TensorNumber tensor(std::size_t rows, std::size_t columns) {
        tensors_.push_back({rows, columns});
        return tensors_.size() - 1;
    }
    void add(TensorNumber made, std::vector<TensorNumber> read,
             std::function<void(const Addresses&)> compute) {
        operators_.push_back({made, std::move(read), std::move(compute)});
    }
    const std::vector<Tensor>& tensors() const noexcept { return tensors_; }
    const std::vector<Operator>& operators() const noexcept { return operators_; }

    /// A tensor lives from the operator that computes it to the last one that reads it. The result,
    /// and tensors that are not read, live to the end.
    std::vector<TensorLifetime> lifetimes() const {
        const auto end = static_cast<std::int64_t>(operators_.size()) + 1;
        std::vector<TensorLifetime> lives(tensors_.size());
        for (std::size_t step = 0; step < operators_.size(); ++step) {
            const auto time = static_cast<std::int64_t>(step);
            const Operator& op = operators_[step];
            lives[op.made] = {time, end, tensors_[op.made].bytes(), alignment};
            // Inputs live until after this operator, so that its output lies elsewhere.
            for (const TensorNumber read : op.read) lives[read].end = time + 1;
        }
        lives[operators_.back().made].end = end;
        return lives;
    }

private:
    std::vector<Tensor> tensors_;
    std::vector<Operator> operators_;
};

/// Pseudorandom weights, the same on every machine.
float weight(std::size_t seed, std::size_t row, std::size_t column) noexcept {
    std::uint64_t mixed = (seed << 40 ^ row << 20 ^ column) * 0x9e3779b97f4a7c15;
    mixed ^= mixed >> 31;
    return (static_cast<float>(mixed % 2001) - 1000) / 8000;
}

/// The operators of a transformer. Weights are computed where they are used, because they are not
/// part of the plan.
class Transformer {
public:
    Transformer() {
        TensorNumber state = input();
        for (std::size_t layer = 0; layer < layers; ++layer) state = add_layer(state, layer);
        result_ = normalised(state);
    }
    const Graph& graph() const noexcept { return graph_; }
    TensorNumber result() const noexcept { return result_; }

private:
    TensorNumber input() {
        const TensorNumber made = graph_.tensor(tokens, width);
        graph_.add(made, {}, [made](const Addresses& addresses) {
            for (std::size_t i = 0; i < tokens * width; ++i) {
                addresses.of[made][i] = 8 * weight(1, i / width, i % width);
            }
        });
        return made;
    }

    TensorNumber add_layer(TensorNumber state, std::size_t layer) {
        const std::size_t seed = 10 * (layer + 1);
        const TensorNumber ready = normalised(state);
        const TensorNumber query = product(ready, width, seed + 1);
        const TensorNumber key = product(ready, width, seed + 2);
        const TensorNumber value = product(ready, width, seed + 3);
        const TensorNumber mixed = weighted(softmax(scores(query, key)), value);
        const TensorNumber attended = sum(state, product(mixed, width, seed + 4));
        const TensorNumber wide = product(normalised(attended), hidden, seed + 5);
        return sum(attended, product(rectified(wide), width, seed + 6));
    }

    Tensor shape(TensorNumber number) const { return graph_.tensors()[number]; }

    /// Applies `row` to each row of a tensor; the result has the same shape.
    template <class Row>
    TensorNumber by_rows(TensorNumber from, Row row) {
        const auto [rows, columns] = shape(from);
        const TensorNumber made = graph_.tensor(rows, columns);
        graph_.add(made, {from}, [=, rows = rows, columns = columns](const Addresses& addresses) {
            for (std::size_t i = 0; i < rows; ++i) {
                row(std::span<const float>(addresses.of[from] + i * columns, columns),
                    addresses.of[made] + i * columns, i);
            }
        });
        return made;
    }
    TensorNumber normalised(TensorNumber from) {
        return by_rows(from, [](std::span<const float> row, float* made, std::size_t) {
            float squares = 0;
            for (const float element : row) squares += element * element;
            const float scale = 1 / std::sqrt(squares / static_cast<float>(row.size()) + 1e-5f);
            for (const float element : row) *made++ = element * scale;
        });
    }
    TensorNumber rectified(TensorNumber from) {
        return by_rows(from, [](std::span<const float> row, float* made, std::size_t) {
            for (const float element : row) *made++ = std::max(element, 0.0f);
        });
    }
    /// Causal: each row uses only its elements up to the diagonal.
    TensorNumber softmax(TensorNumber from) {
        return by_rows(from, [](std::span<const float> row, float* made, std::size_t number) {
            const std::span<const float> seen = row.first(number + 1);
            const float max = *std::max_element(seen.begin(), seen.end());
            float sum = 0;
            for (std::size_t i = 0; i < row.size(); ++i) {
                made[i] = i <= number ? std::exp(row[i] - max) : 0;
                sum += made[i];
            }
            for (std::size_t i = 0; i < row.size(); ++i) made[i] /= sum;
        });
    }
    TensorNumber sum(TensorNumber a, TensorNumber b) {
        const auto [rows, columns] = shape(a);
        const TensorNumber made = graph_.tensor(rows, columns);
        graph_.add(made, {a, b}, [=, count = rows * columns](const Addresses& addresses) {
            for (std::size_t i = 0; i < count; ++i) {
                addresses.of[made][i] = addresses.of[a][i] + addresses.of[b][i];
            }
        });
        return made;
    }
    /// Multiplies by a matrix of weights.
    TensorNumber product(TensorNumber from, std::size_t columns, std::size_t seed) {
        return multiplied(from, {}, columns, shape(from).columns,
                          [seed](const Addresses&, std::size_t inner, std::size_t column) {
                              return weight(seed, inner, column);
                          });
    }
    TensorNumber scores(TensorNumber query, TensorNumber key) {
        return multiplied(query, {key}, tokens, width,
                          [key](const Addresses& addresses, std::size_t inner, std::size_t column) {
                              return addresses.of[key][column * width + inner] / 8;
                          });
    }
    TensorNumber weighted(TensorNumber parts, TensorNumber value) {
        return multiplied(
            parts, {value}, width, tokens,
            [value](const Addresses& addresses, std::size_t inner, std::size_t column) {
                return addresses.of[value][inner * width + column];
            });
    }
    template <class Right>
    TensorNumber multiplied(TensorNumber left, std::vector<TensorNumber> read, std::size_t columns,
                            std::size_t inner, Right right) {
        const std::size_t rows = shape(left).rows;
        const TensorNumber made = graph_.tensor(rows, columns);
        read.push_back(left);
        graph_.add(made, std::move(read), [=](const Addresses& addresses) {
            for (std::size_t i = 0; i < rows * columns; ++i) {
                float sum = 0;
                for (std::size_t k = 0; k < inner; ++k) {
                    sum += addresses.of[left][i / columns * inner + k] *
                           right(addresses, k, i % columns);
                }
                addresses.of[made][i] = sum;
            }
        });
        return made;
    }

    Graph graph_;
    TensorNumber result_ = 0;
};

struct Run {
    std::size_t peak_bytes = 0;
    std::vector<float> result;
};

std::vector<float> copy_of(const Transformer& model, const Addresses& addresses) {
    const float* const result = addresses.of[model.result()];
    return {result, result + tokens * width};
}

/// Allocates tensors from a pool, and tracks the bytes of its blocks in use.
class Pooled {
public:
    explicit Pooled(std::size_t tensors)
        : pool_(options()), addresses_{std::vector<float*>(tensors)} {}

    void make(TensorNumber number, std::size_t bytes) {
        addresses_.of[number] = static_cast<float*>(pool_.allocate(bytes));
        in_use_ += pool_.usable_size(addresses_.of[number]);
        peak_ = std::max(peak_, in_use_);
    }
    void end(TensorNumber number) {
        in_use_ -= pool_.usable_size(addresses_.of[number]);
        pool_.deallocate(addresses_.of[number]);
    }
    const Addresses& addresses() const noexcept { return addresses_; }
    std::size_t peak() const noexcept { return peak_; }

private:
    static PoolOptions options() {
        PoolOptions options;
        options.name = "planned_graph";
        return options;
    }

    MemoryPool pool_;
    Addresses addresses_;
    std::size_t in_use_ = 0;
    std::size_t peak_ = 0;
};

/// Allocates each tensor when it is computed, and frees it after its last use.
Run with_pool(const Transformer& model) {
    const Graph& graph = model.graph();
    const std::vector<TensorLifetime> lives = graph.lifetimes();
    Pooled pooled(lives.size());
    for (std::size_t step = 0; step < graph.operators().size(); ++step) {
        const Graph::Operator& op = graph.operators()[step];
        pooled.make(op.made, graph.tensors()[op.made].bytes());
        op.compute(pooled.addresses());
        for (TensorNumber number = 0; number < lives.size(); ++number) {
            if (lives[number].end == static_cast<std::int64_t>(step) + 1) pooled.end(number);
        }
    }
    Run run = {pooled.peak(), copy_of(model, pooled.addresses())};
    pooled.end(model.result());
    return run;
}

/// Allocates all tensors one after the other: an arena frees nothing before the end.
Addresses allocate_all(const Graph& graph, Arena& arena) {
    Addresses addresses;
    for (const Tensor& tensor : graph.tensors()) {
        addresses.of.push_back(static_cast<float*>(arena.allocate(tensor.bytes())));
    }
    return addresses;
}

Arena arena_of(std::size_t bytes) {
    ArenaOptions options;
    options.name = "planned_graph";
    options.initial_capacity = bytes;
    options.max_capacity = bytes;
    return Arena(options);
}

Run compute_in(const Transformer& model, const Addresses& addresses, std::size_t peak_bytes) {
    for (const Graph::Operator& op : model.graph().operators()) op.compute(addresses);
    return {peak_bytes, copy_of(model, addresses)};
}

Run with_arena(const Transformer& model) {
    Arena measuring = Arena::measuring();
    (void)allocate_all(model.graph(), measuring);
    Arena arena = arena_of(measuring.peak());
    const Addresses addresses = allocate_all(model.graph(), arena);
    return compute_in(model, addresses, arena.peak());
}

/// One block of the arena, with each tensor at its offset in the plan.
Run with_plan(const Transformer& model, const MemoryPlan& plan) {
    Arena arena = arena_of(plan.peak_bytes);
    auto* const memory = static_cast<std::byte*>(arena.allocate(plan.peak_bytes));
    Addresses addresses;
    for (const std::uint64_t offset : plan.offsets) {
        addresses.of.push_back(reinterpret_cast<float*>(memory + offset));
    }
    return compute_in(model, addresses, arena.peak());
}

bool same(const Run& a, const Run& b) {
    return a.result.size() == b.result.size() &&
           std::memcmp(a.result.data(), b.result.data(), a.result.size() * sizeof(float)) == 0;
}

void print(const char* how, const Run& run) {
    std::printf("%-8s %9zu bytes\n", how, run.peak_bytes);
}

int run() {
    const Transformer model;
    const std::vector<TensorLifetime> lives = model.graph().lifetimes();
    const MemoryPlan plan = plan_memory(lives);
    validate(lives, plan);
    const Run pool = with_pool(model);
    const Run arena = with_arena(model);
    const Run planned = with_plan(model, plan);
    std::printf("%zu tensors; maximum bytes alive at once: %llu\n", lives.size(),
                static_cast<unsigned long long>(plan.lower_bound_bytes));
    print("arena", arena);
    print("pool", pool);
    print("plan", planned);
    const bool equal = same(pool, arena) && same(pool, planned);
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
