#include <cstddef>

#include <tensorpool/timeline.hpp>

#include "base/report_text.hpp"
#include "base/text.hpp"

namespace tensorpool {
namespace {

constexpr std::uint64_t ns_per_ms = 1'000'000;

/// Formats a time of day such as "23:59:59.999", in UTC.
std::string time_of_day(std::uint64_t time_ns) {
    const std::uint64_t ms = time_ns / ns_per_ms % 86'400'000;
    char text[16];
    std::snprintf(text, sizeof text, "%02u:%02u:%02u.%03u", static_cast<unsigned>(ms / 3'600'000),
                  static_cast<unsigned>(ms / 60'000 % 60), static_cast<unsigned>(ms / 1000 % 60),
                  static_cast<unsigned>(ms % 1000));
    return text;
}

/// Removes control characters from a name that another process chose, so that they cannot affect
/// the terminal. `quoted` escapes those of ASCII; this function replaces DEL and the second set
/// (U+0080 to U+009F).
std::string printable(const std::string& name) {
    std::string out = base::quoted(name.c_str());
    out = out.substr(1, out.size() - 2);
    for (std::size_t at = 0; at < out.size(); ++at) {
        const auto byte = [&](std::size_t i) { return static_cast<unsigned char>(out[i]); };
        if (byte(at) == 0xC2 && byte(at + 1) < 0xA0) out.replace(at, 2, "?");
        if (byte(at) == 0x7F) out[at] = '?';
    }
    return out;
}

}  // namespace

const char* to_string(EntryKind kind) noexcept {
    static constexpr const char* words[entry_kind_count] = {
        "?",      "growth",    "give-back", "pressure",  "limit",   "failure",   "check",
        "scope",  "mark",      "completed", "coalesced", "aged",    "callbacks", "uncached",
        "waited", "allocated", "recycled",  "freed",     "profile", "plan",      "drift"};
    const auto number = static_cast<unsigned>(kind);
    return number < entry_kind_count ? words[number] : "?";
}

const char* to_string(LimitKind kind) noexcept {
    static constexpr const char* words[limit_kind_count] = {
        "", "max_allocation", "max_capacity", "memory", "address space", "records"};
    const auto number = static_cast<unsigned>(kind);
    return number < limit_kind_count ? words[number] : "?";
}

std::string to_json(const TimelineEntry& entry) {
    using base::quoted;
    return "{\"number\":" + std::to_string(entry.number) +
           ",\"time_ns\":" + std::to_string(entry.time_ns) +
           ",\"thread\":" + std::to_string(entry.thread) +
           ",\"kind\":" + quoted(to_string(entry.kind)) +
           ",\"limit\":" + quoted(to_string(entry.limit)) +
           ",\"bytes\":" + std::to_string(entry.bytes) + ",\"name\":" + quoted(entry.name.c_str()) +
           '}';
}

std::string to_text(const TimelineEntry& entry) {
    std::string out = time_of_day(entry.time_ns) + "  ";
    char kind[16];
    std::snprintf(kind, sizeof kind, "%-9s", to_string(entry.kind));
    out += std::string(kind) + "  " + printable(entry.name);
    if (entry.bytes != 0) out += std::string("  ") + base::BytesText(entry.bytes).c_str();
    if (entry.limit != LimitKind::none) out += std::string("  (") + to_string(entry.limit) + ')';
    return out;
}

}  // namespace tensorpool
