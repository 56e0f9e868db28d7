#include "formats/heap_text.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "common/html.hpp"

namespace tensorpool::command {
namespace {

// Readers subtract 1 from addresses, so symbols are placed apart.
constexpr std::uint64_t distance = 0x1000;

// A name must fit on one line. Two dashes would separate an inlined function from its caller.
std::string clean(const std::string& name) {
    std::string text = valid_utf8(name);
    std::ranges::replace_if(
        text, [](char character) { return static_cast<unsigned char>(character) < ' '; }, '?');
    for (std::size_t at = 0; (at = text.find("--", at)) != std::string::npos;) {
        text.erase(at, 1);
    }
    return text.empty() ? "?" : text;
}

}  // namespace

std::string counts(const HeapSum& sum) {
    return fmt::format("{:6}: {:8} [{:6}: {:8}] @", sum.blocks, sum.bytes, sum.all_blocks,
                       sum.all_bytes);
}

void NamedHeap::add(const HeapSum& sum, const std::vector<std::string>& innermost_first) {
    all_ += sum;
    lines_ += counts(sum);
    // Readers subtract 1 from return addresses.
    std::uint64_t beyond = 0;
    for (const std::string& name : innermost_first) {
        lines_ += fmt::format(" {:#x}", address_of(name) + beyond);
        beyond = 1;
    }
    lines_ += '\n';
}

std::string NamedHeap::text(std::string_view kind) const {
    std::string text = "--- symbol\nbinary=recording\n";
    for (const auto& [name, address] : addresses_) {
        text += fmt::format("{:#018x} {}\n", address, name);
    }
    return text + fmt::format("---\n--- heap\nheap profile: {} {}\n{}\nMAPPED_LIBRARIES:\n",
                              counts(all_), kind, lines_);
}

std::uint64_t NamedHeap::address_of(const std::string& name) {
    const std::uint64_t next = (addresses_.size() + 1) * distance;
    return addresses_.try_emplace(clean(name), next).first->second;
}

}  // namespace tensorpool::command
