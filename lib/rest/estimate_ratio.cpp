#include "rest/estimate_ratio.hpp"

#include <algorithm>

#include "rest/pieces/piece_codec.hpp"
#include "rest/pooled_workspace.hpp"

namespace tensorpool::stashing {
namespace {

constexpr std::size_t max_samples = 4;
/// Smaller than the pieces of a stash: tensors of 1 MiB would take a fourth longer to encode.
constexpr std::size_t max_sample_bytes = default_piece_bytes / 4;

}  // namespace

double estimate_ratio(std::span<const std::byte> bytes, const DataType& type, MemoryPool& pool) {
    if (bytes.empty()) return 0;
    const std::size_t piece_bytes = std::min(bytes.size(), max_sample_bytes);
    PooledWorkspace workspace(pool, piece_bytes);
    const PooledAllocation out(pool, max_encoded_bytes(piece_bytes));
    // Whole pieces, which begin with whole elements, from the first to the last.
    const std::size_t pieces = bytes.size() / piece_bytes;
    const std::size_t samples = std::min(max_samples, pieces);
    std::size_t encoded = 0;
    for (std::size_t i = 0; i < samples; ++i) {
        const std::size_t number = samples == 1 ? 0 : i * (pieces - 1) / (samples - 1);
        encoded += encode_piece(bytes.subspan(number * piece_bytes, piece_bytes), type,
                                out.as<std::byte>(), workspace.get());
    }
    return static_cast<double>(encoded) / static_cast<double>(samples * piece_bytes);
}

}  // namespace tensorpool::stashing
