#include <tensorpool/scope_statistics.hpp>

#include <cstdint>
#include <string>

#include "base/text.hpp"
#include "statistics/figures.hpp"
#include "statistics/report_parts.hpp"

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

/// "3 blocks of 64 B", "1 block of 2 MiB fewer".
std::string part(std::int64_t blocks, const char* what, const std::string& of) {
    std::string out = std::to_string(magnitude(blocks)) + ' ' + what;
    if (magnitude(blocks) != 1) out += 's';
    out += " of " + of;
    return blocks < 0 ? out + " fewer" : out;
}

std::string large_part(const ScopeGrowth& growth) {
    if (growth.large_blocks == 0) {
        return "large blocks " + size(growth.large_bytes) +
               (growth.large_bytes < 0 ? " smaller" : " larger");
    }
    const std::string in_all = magnitude(growth.large_blocks) == 1 ? "" : " in all";
    const std::string sign = (growth.large_bytes < 0) != (growth.large_blocks < 0) ? "-" : "";
    return part(growth.large_blocks, "large block", sign + size(growth.large_bytes) + in_all);
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
        if (growth.blocks[bucket] == 0) continue;
        const BytesText block(detail::bucket_bytes(bucket));
        append(part(growth.blocks[bucket], "block", block.c_str()));
    }
    if (growth.large_blocks != 0 || growth.large_bytes != 0) append(large_part(growth));
    return out;
}

std::string to_json(const ScopeStatistics& scope) {
    using statistics::quoted;
    return "{\"name\":" + quoted(scope.name) + ',' +
           statistics::members(scope, statistics::scope_figures) + '}';
}

}  // namespace tensorpool
