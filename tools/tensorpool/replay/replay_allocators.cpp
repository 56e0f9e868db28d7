#include "replay/replay_allocators.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>

#include "common/printable.hpp"
#include "common/settings.hpp"

namespace tensorpool::command::replay {
namespace {

/// Makes jemalloc keep freed memory forever and treat large blocks as others, as its users do for
/// programs of this kind.
constexpr const char* tuned = "dirty_decay_ms:-1,muzzy_decay_ms:-1,oversize_threshold:0";

const std::vector<ReplayAllocator>& known() {
    static const std::vector<ReplayAllocator> allocators = {
        {"none", Calls::floor, "", false, "", {}, false},
        {"plan", Calls::plan, "", false, "", {}, false},
        {"pool", Calls::pool, "", false, "", {}, false},
        {"glibc", Calls::malloc, "libc", false, "libc6", {}, false},
        {"tcmalloc",
         Calls::malloc,
         "libtcmalloc_minimal.so.4",
         true,
         "libtcmalloc-minimal4",
         {},
         false},
        {"jemalloc", Calls::malloc, "libjemalloc.so.2", true, "libjemalloc2", {}, false},
        {"jemalloc-tuned",
         Calls::malloc,
         "libjemalloc.so.2",
         true,
         "libjemalloc2",
         {{"MALLOC_CONF", tuned}},
         true},
        {"mimalloc", Calls::malloc, "libmimalloc.so.2", true, "libmimalloc2.0", {}, false},
    };
    return allocators;
}

std::vector<std::string> parts_of(const std::string& text, char between) {
    std::vector<std::string> parts;
    for (std::size_t at = 0; at <= text.size();) {
        const std::size_t end = std::min(text.find(between, at), text.size());
        parts.push_back(text.substr(at, end - at));
        at = end + 1;
    }
    return parts;
}

ReplayAllocator allocator_of(const std::string& word) {
    const std::vector<std::string> parts = parts_of(word, ':');
    const auto found = std::ranges::find(known(), parts.front(), &ReplayAllocator::name);
    if (found == known().end()) {
        throw CommandError(wrong_usage,
                           fmt::format("--against: there is no allocator {}; there are {}",
                                       printable(parts.front()), allocator_names()));
    }
    ReplayAllocator allocator = *found;
    if (parts.size() == 1) return allocator;
    if (allocator.calls != Calls::pool) {
        throw CommandError(wrong_usage,
                           fmt::format("--against: only the pool takes options, not {}; found {}",
                                       allocator.name, printable(word)));
    }
    allocator.name = word;
    allocator.variables = pool_variables(std::span(parts).subspan(1));
    return allocator;
}

}  // namespace

std::string allocator_names() {
    std::string names;
    for (const ReplayAllocator& allocator : known()) names += ", " + allocator.name;
    return names.substr(2);
}

std::vector<ReplayAllocator> allocators_of(std::span<const std::string> names,
                                           std::span<const std::string> options) {
    std::vector<ReplayAllocator> allocators;
    std::ranges::transform(names, std::back_inserter(allocators), allocator_of);
    const Variables variables = pool_variables(options);
    for (ReplayAllocator& allocator : allocators) {
        if (allocator.calls == Calls::pool && allocator.variables.empty()) {
            allocator.variables = variables;
        }
    }
    return allocators;
}

}  // namespace tensorpool::command::replay
