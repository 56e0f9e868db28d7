/// Question: how much faster are transposition and matrix products on matrices from
/// Scratch::allocate_padded_matrix than on matrices whose rows have no gaps?

#include <algorithm>
#include <cstddef>
#include <string>
#include <vector>

#include <tensorpool/scratch.hpp>

#include "support/barrier.hpp"
#include "support/cores.hpp"
#include "support/program.hpp"
#include "support/turns.hpp"

namespace {

using perf::text;
using tensorpool::Scratch;

/// Row `i` begins `i * stride` elements after `data`.
struct Matrix {
    float* data;
    std::size_t stride;

    float& at(std::size_t row, std::size_t column) const { return data[row * stride + column]; }
};

enum class Layout { packed, padded, padded_by_hand };

/// Makes a matrix of n rows of n floats. `padded_by_hand` makes each row a cache line longer,
/// whatever n is.
Matrix make_matrix(std::size_t n, Layout layout) {
    Scratch& scratch = Scratch::local();
    Matrix matrix = {nullptr, n};
    if (layout == Layout::packed) {
        matrix.data = static_cast<float*>(scratch.allocate_matrix_pack(n, n, sizeof(float)));
    } else if (layout == Layout::padded) {
        const tensorpool::PaddedMatrix padded = scratch.allocate_padded_matrix(n, n, sizeof(float));
        matrix = {static_cast<float*>(padded.data), padded.row_bytes / sizeof(float)};
    } else {
        matrix.stride = n + 64 / sizeof(float);
        matrix.data =
            static_cast<float*>(scratch.allocate_matrix_pack(n, matrix.stride, sizeof(float)));
    }
    for (std::size_t i = 0; i < n; ++i) std::fill_n(&matrix.at(i, 0), n, 1.0F);
    return matrix;
}

// Work on matrices: `width` is the number of rows or columns of the result that are computed.

/// Reads along rows, writes down columns.
void transpose(std::size_t n, std::size_t width, Matrix in, Matrix, Matrix out) {
    for (std::size_t i = 0; i < width; ++i) {
        for (std::size_t j = 0; j < n; ++j) out.at(j, i) = in.at(i, j);
    }
}

/// Transposes in tiles of 32 x 32, the usual way to use caches better.
void transpose_tiles(std::size_t n, std::size_t width, Matrix in, Matrix, Matrix out) {
    constexpr std::size_t tile = 32;
    for (std::size_t i = 0; i < width; i += tile) {
        for (std::size_t j = 0; j < n; j += tile) {
            const std::size_t i_end = std::min(i + tile, width), j_end = std::min(j + tile, n);
            for (std::size_t r = i; r < i_end; ++r) {
                for (std::size_t c = j; c < j_end; ++c) out.at(c, r) = in.at(r, c);
            }
        }
    }
}

/// The textbook product: rows of the left matrix times columns of the right one.
void multiply(std::size_t n, std::size_t width, Matrix a, Matrix b, Matrix out) {
    for (std::size_t i = 0; i < width; ++i) {
        for (std::size_t j = 0; j < n; ++j) {
            float sum = 0;
            for (std::size_t k = 0; k < n; ++k) sum += a.at(i, k) * b.at(k, j);
            out.at(i, j) = sum;
        }
    }
}

/// Computes one column of the result after another, which walks down two matrices.
void multiply_columns(std::size_t n, std::size_t width, Matrix a, Matrix b, Matrix out) {
    for (std::size_t j = 0; j < width; ++j) {
        for (std::size_t k = 0; k < n; ++k) {
            const float factor = b.at(k, j);
            for (std::size_t i = 0; i < n; ++i) out.at(i, j) += a.at(i, k) * factor;
        }
    }
}

/// Computes one row of the result after another, which walks along rows only.
void multiply_rows(std::size_t n, std::size_t width, Matrix a, Matrix b, Matrix out) {
    for (std::size_t i = 0; i < width; ++i) {
        for (std::size_t k = 0; k < n; ++k) {
            const float factor = a.at(i, k);
            for (std::size_t j = 0; j < n; ++j) out.at(i, j) += factor * b.at(k, j);
        }
    }
}

using Work = void (*)(std::size_t n, std::size_t width, Matrix a, Matrix b, Matrix out);

struct NamedWork {
    const char* name;
    Work work;
};

/// The three matrices of one layout.
class Case {
public:
    Case(std::size_t n, Layout layout)
        : n_(n),
          a_(make_matrix(n, layout)),
          b_(make_matrix(n, layout)),
          out_(make_matrix(n, layout)) {}

    /// Returns the nanoseconds that `work` takes for `width` rows or columns of the result.
    double run(Work work, std::size_t width) const {
        float* data = out_.data;
        perf::opaque(data);
        const double seconds = perf::cpu_seconds_of([&] {
            work(n_, width, a_, b_, out_);
            perf::opaque(data);
        });
        return seconds * 1e9;
    }
    std::size_t stride_bytes() const { return a_.stride * sizeof(float); }

private:
    std::size_t n_;
    Matrix a_, b_, out_;
};

/// One table: works, sizes, and how much of the result is computed.
struct Question {
    const char* title;
    const char* unit;
    std::vector<NamedWork> works;
    std::vector<std::size_t> sizes;
    /// Rows or columns of the result that are computed; 0 means all.
    std::size_t width;
    /// True for products, which take n multiplications for each element of the result. False for
    /// transpositions, which move each element once.
    bool is_product;
};

perf::Cells measure_one(const perf::Options& options, const Question& question,
                        const NamedWork& named, std::size_t n) {
    const tensorpool::ScratchScope scope;
    const Case packed(n, Layout::packed), padded(n, Layout::padded),
        by_hand(n, Layout::padded_by_hand);
    const std::size_t width = question.width == 0 ? n : question.width;
    const std::size_t steps = n * width * (question.is_product ? n : 1);
    const auto subject = [&](const Case& one) -> perf::Subject {
        return [&, steps, width] { return one.run(named.work, width) / double(steps); };
    };
    const perf::Turns turns(options.rounds, {subject(packed), subject(padded), subject(by_hand)});
    return {std::string(named.name).append(" ").append(std::to_string(n)),
            std::to_string(packed.stride_bytes()),
            std::to_string(padded.stride_bytes()),
            text(turns.median(0)),
            text(turns.median(1)),
            text(turns.ratio(0, 1)),
            text(turns.ratio(0, 2))};
}

void print_table(const perf::Options& options, const perf::Report& report,
                 const Question& question) {
    std::vector<perf::Cells> rows = {{question.unit, "row, B", "padded row, B", "packed", "padded",
                                      "gain", "gain of 64 B more"}};
    for (const NamedWork& named : question.works) {
        for (const std::size_t n : question.sizes) {
            rows.push_back(measure_one(options, question, named, n));
        }
    }
    report.print(question.title, rows);
}

}  // namespace

/// There are no aims: the tables show what padding gains.
int main(int argc, char** argv) {
    const perf::Options options = perf::read_options(argc, argv, 15);
    const perf::Report report(options);
    perf::stay_on_core(0);
    using Sizes = std::vector<std::size_t>;
    print_table(options, report,
                {.title = "matrix: transposition of n x n floats",
                 .unit = "ns an element",
                 .works = {{"plain", transpose}, {"tiles", transpose_tiles}},
                 .sizes = options.quick ? Sizes{64} : Sizes{512, 768, 1024, 2000, 2048, 4096},
                 .width = 0,
                 .is_product = false});
    print_table(
        options, report,
        {.title = "matrix: product of n x n floats, 4 rows or columns of it",
         .unit = "ns a multiplication",
         .works = {{"naive", multiply}, {"columns", multiply_columns}, {"rows", multiply_rows}},
         .sizes = options.quick ? Sizes{64} : Sizes{512, 768, 1000, 1024, 2048},
         .width = 4,
         .is_product = true});
    return report.status();
}
