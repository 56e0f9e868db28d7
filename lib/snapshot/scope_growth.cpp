#include <tensorpool/scope_statistics.hpp>

#include "base/text.hpp"

namespace tensorpool {
namespace {

using base::BytesText;

std::uint64_t magnitude(std::int64_t value) noexcept {
    const auto bits = static_cast<std::uint64_t>(value);
    return value < 0 ? -bits : bits;
}

std::string size(std::int64_t bytes) {
    return BytesText(magnitude(bytes)).c_str();
}

/// Formats a number of blocks without a sign, such as "3 blocks".
std::string count(std::int64_t blocks, const char* what) {
    const std::string out = std::to_string(magnitude(blocks)) + ' ' + what;
    return magnitude(blocks) == 1 ? out : out + 's';
}

/// Formats the growth of one bucket, such as "3 blocks of 64 B" or "1 block of 1 KiB fewer".
std::string part(std::int64_t blocks, unsigned bucket) {
    const BytesText bytes(detail::bucket_bytes(bucket));
    return count(blocks, "block") + " of " + bytes.c_str() + (blocks < 0 ? " fewer" : "");
}

/// Formats the growth of large blocks, such as "1 large block of 2 MiB", "2 large blocks of 2 MiB
/// in all" or "1 large block fewer, of 2 MiB more in all".
std::string large_part(const ScopeGrowth& growth) {
    const std::string bytes = size(growth.large_bytes);
    const char* const sign = growth.large_bytes < 0 ? "less" : "more";
    if (growth.large_blocks == 0) return "large blocks of " + bytes + ' ' + sign + " in all";
    std::string out = count(growth.large_blocks, "large block");
    if (growth.large_blocks < 0) out += " fewer";
    if ((growth.large_bytes < 0) != (growth.large_blocks < 0)) {
        return out + ", of " + bytes + ' ' + sign + " in all";
    }
    return out + " of " + bytes + (magnitude(growth.large_blocks) == 1 ? "" : " in all");
}

std::string headline(std::int64_t bytes) {
    if (bytes < 0) return "grew in blocks, while bytes shrank by " + size(bytes);
    return bytes == 0 ? "grew in blocks, not in bytes" : "grew by " + size(bytes);
}

}  // namespace

std::string to_text(const ScopeGrowth& growth) {
    if (!growth.grew) return "did not grow";
    std::string out = headline(growth.bytes);
    const char* separator = ": ";
    const auto append = [&](const std::string& text) {
        out += separator + text;
        separator = ", ";
    };
    for (unsigned bucket = 0; bucket < detail::bucket_count; ++bucket) {
        if (growth.blocks[bucket] != 0) append(part(growth.blocks[bucket], bucket));
    }
    if (growth.large_blocks != 0 || growth.large_bytes != 0) append(large_part(growth));
    return out;
}

}  // namespace tensorpool
