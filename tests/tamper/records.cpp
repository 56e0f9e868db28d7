#include "tamper/records.hpp"

#include <sys/mman.h>

#include <algorithm>
#include <fstream>
#include <sstream>

#include "pages/address_space.hpp"

namespace tensorpool::tamper {
namespace {

constexpr std::size_t page = 4096;

bool is_used(std::uintptr_t at) {
    const auto* const words = reinterpret_cast<const std::uint64_t*>(at);
    return std::any_of(words, words + page / sizeof(*words), [](auto word) { return word != 0; });
}

/// One byte for each page of the mapping, with the lowest bit set if the page is in memory. The
/// others hold zeros, and reading them would let each one be mapped.
std::vector<unsigned char> resident_pages(const Mapping& mapping) {
    std::vector<unsigned char> pages((mapping.end - mapping.begin) / page);
    void* const begin = reinterpret_cast<void*>(mapping.begin);
    const bool is_known = mincore(begin, mapping.end - mapping.begin, pages.data()) == 0;
    if (!is_known) std::fill(pages.begin(), pages.end(), static_cast<unsigned char>(1));
    return pages;
}

bool is_in_window(std::uintptr_t at) {
    pages::AddressSpace& space = pages::address_space();
    return space.map().offset_of(reinterpret_cast<void*>(at)) <
           space.max_pages() * pages::page_bytes;
}

bool is_in_map(std::uintptr_t at) {
    const pages::PageMap& map = pages::address_space().map();
    const auto entries = reinterpret_cast<std::uintptr_t>(map.entries());
    return at - entries < map.page_count() * sizeof(pages::PageMap::Word);
}

}  // namespace

std::vector<Mapping> writable_mappings() {
    std::vector<Mapping> found;
    std::ifstream file("/proc/self/maps");
    for (std::string line; std::getline(file, line);) {
        Mapping mapping;
        char dash = 0;
        std::string access;
        std::string skipped;
        std::istringstream words(line);
        words >> std::hex >> mapping.begin >> dash >> mapping.end >> access >> skipped >> skipped >>
            skipped >> mapping.name;
        if (access.starts_with("rw")) found.push_back(mapping);
    }
    return found;
}

RecordPages::RecordPages(const std::vector<Mapping>& before) {
    const auto is_old = [&](std::uintptr_t at) {
        return std::any_of(before.begin(), before.end(), [at](const Mapping& mapping) {
            return mapping.begin <= at && at < mapping.end;
        });
    };
    for (const Mapping& mapping : writable_mappings()) {
        const bool is_segment = mapping.name.starts_with("/memfd:tensorpool");
        if (!mapping.name.empty() && !is_segment) continue;
        const std::vector<unsigned char> in_memory = resident_pages(mapping);
        for (std::uintptr_t at = mapping.begin; at != mapping.end; at += page) {
            if ((in_memory[(at - mapping.begin) / page] & 1U) == 0) continue;
            if (is_old(at) || is_in_window(at) || !is_used(at)) continue;
            pages_.push_back({at, is_segment      ? "statistics"
                                  : is_in_map(at) ? "page map"
                                                  : "records"});
        }
    }
}

const char* RecordPages::flip(std::uint64_t random) const {
    const Page& chosen = pages_[random / (page * 8) % pages_.size()];
    const std::uint64_t bit = random % (page * 8);
    auto* const byte = reinterpret_cast<volatile unsigned char*>(chosen.at + bit / 8);
    *byte = static_cast<unsigned char>(*byte ^ 1U << bit % 8);
    return chosen.kind;
}

}  // namespace tensorpool::tamper
