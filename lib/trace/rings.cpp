#include "trace/rings.hpp"

#include <algorithm>
#include <cstring>
#include <iterator>
#include <new>

namespace tensorpool::trace {
namespace {

constexpr auto relaxed = std::memory_order_relaxed;

// Stores text as records hold it: cut if needed, then filled with zeros.
template <std::size_t Bytes>
void store_text(char (&to)[Bytes], std::string_view text) noexcept {
    const std::size_t length = std::min(text.size(), Bytes - 1);
    std::memcpy(to, text.data(), length);
    std::memset(to + length, 0, Bytes - length);
}

template <std::size_t Bytes>
bool has_text(const char (&stored)[Bytes], std::string_view text) noexcept {
    const std::string_view cut = text.substr(0, Bytes - 1);
    return std::string_view(stored, strnlen(stored, Bytes)) == cut;
}

// FNV-1a.
std::size_t hash_of(std::string_view text) noexcept {
    std::uint64_t hash = 0xcbf29ce484222325;
    for (const char c : text) hash = (hash ^ static_cast<unsigned char>(c)) * 0x100000001b3;
    return hash;
}

}  // namespace

bool Rings::make(Sharing sharing, const TraceProcess& process) noexcept {
    platform::SharedMemory memory;
    if (sharing == Sharing::yes) {
        memory = platform::share_memory("tensorpool-rings", rings_bytes);
    } else {
        memory.address = platform::map(rings_bytes, platform::page_bytes());
    }
    if (memory.address == nullptr || !platform::get_shared_pages(memory.address, rings_offset)) {
        return false;
    }
    platform::keep_from_forks(memory.address, rings_bytes);
    auto* const header = new (memory.address) RingsHeader{};
    header->version.store(rings_version, relaxed);
    header->bytes.store(rings_bytes, relaxed);
    header->process = process;
    header->magic.store(rings_magic, std::memory_order_release);
    const std::lock_guard guard(mutex_);
    memory_ = memory;
    std::fill(std::begin(taken_), std::end(taken_), 0);
    std::fill(std::begin(module_numbers_), std::end(module_numbers_), 0);
    return true;
}

// Threads may be in the middle of an entry, so the address range stays mapped. Its pages are
// replaced by untouched ones: a ring takes 512 KiB, and there is one for each thread.
void Rings::end() noexcept {
    header().ended.store(1, std::memory_order_release);
    platform::close_shared_memory(memory_);
    memory_.file = -1;
    void* const nothing = platform::map(rings_bytes, platform::page_bytes());
    if (nothing == nullptr) return;
    if (!platform::replace_mapping(memory_.address, nothing, rings_bytes)) {
        platform::unmap(nothing, rings_bytes);
    }
}

Rings::Taken Rings::take() noexcept {
    const std::lock_guard guard(mutex_);
    std::size_t ring = ring_count;
    for (std::size_t word = 0; word < std::size(taken_) && ring == ring_count; ++word) {
        if (~taken_[word] == 0) continue;
        ring = word * 64 + static_cast<std::size_t>(std::countr_one(taken_[word]));
    }
    // Touching a page that the system cannot supply would end the process.
    if (ring == ring_count || !platform::get_shared_pages(entries(ring), ring_bytes)) {
        return {};
    }
    taken_[ring / 64] |= std::uint64_t{1} << ring % 64;
    if (ring >= header().rings.load(relaxed)) {
        header().rings.store(ring + 1, std::memory_order_release);
    }
    return {ring, &head(ring), entries(ring)};
}

void Rings::name(TraceSource kind, std::uint64_t source, std::string_view name) noexcept {
    const std::lock_guard guard(mutex_);
    const std::size_t count = header().names.load(relaxed);
    const auto* const known =
        std::find_if(name_table(), name_table() + count,
                     [&](const TraceName& one) { return one.source == source; });
    if (known != name_table() + count) return;
    if (count == name_count) {
        header().names_dropped.fetch_add(1, relaxed);
        return;
    }
    TraceName& added = name_table()[count];
    added = {.source = source, .kind = kind, .reserved = 0, .text = {}};
    store_text(added.text, name);
    header().names.store(count + 1, std::memory_order_release);
}

std::uint64_t Rings::number_of_module(std::string_view path) noexcept {
    const std::lock_guard guard(mutex_);
    for (std::size_t at = hash_of(path);; ++at) {
        std::uint16_t& number = module_numbers_[at % std::size(module_numbers_)];
        if (number == 0) return number = add_module(path);
        if (has_text(module_table()[number - 1].path, path)) return number;
    }
}

std::uint16_t Rings::add_module(std::string_view path) noexcept {
    const std::size_t count = header().modules.load(relaxed);
    if (count == module_count) return 0;
    module_table()[count].number = count + 1;
    store_text(module_table()[count].path, path);
    header().modules.store(count + 1, std::memory_order_release);
    return static_cast<std::uint16_t>(count + 1);
}

}  // namespace tensorpool::trace
