#pragma once

#include <algorithm>
#include <cstring>
#include <iterator>
#include <new>

#include "base/lockable.hpp"
#include "events/recorder_hooks.hpp"
#include "trace/ring_layout.hpp"

namespace tensorpool::trace {

// FNV-1a.
inline std::size_t hash_of(std::string_view text) noexcept {
    std::uint64_t hash = 0xcbf29ce484222325;
    for (const char c : text) hash = (hash ^ static_cast<unsigned char>(c)) * 0x100000001b3;
    return hash;
}

template <std::size_t Bytes>
bool has_text(const char (&stored)[Bytes], std::string_view text) noexcept {
    const std::string_view cut = text.substr(0, Bytes - 1);
    return std::string_view(stored, strnlen(stored, Bytes)) == cut;
}

// Stores text as records hold it: cut if needed, then filled with zeros.
template <std::size_t Bytes>
void store_text(char (&to)[Bytes], std::string_view text) noexcept {
    const std::size_t length = std::min(text.size(), Bytes - 1);
    std::memcpy(to, text.data(), length);
    std::memset(to + length, 0, Bytes - length);
}

/// The rings of one recording, and which of them are taken. Thread-safe.
class Rings : public RingTables<Rings>, public base::Lockable {
public:
    constexpr Rings() noexcept = default;

    enum class Sharing : bool { no, yes };
    /// Gets memory for a new recording. The memory of the last one stays mapped where threads may
    /// still write into it. Returns false if the system has none.
    [[nodiscard]] bool make(Sharing sharing, const TraceProcess& process) noexcept {
        platform::SharedMemory memory;
        if (sharing == Sharing::yes) {
            memory = platform::share_memory("tensorpool-rings", rings_bytes);
        } else {
            memory.address = platform::map(rings_bytes, platform::page_bytes());
        }
        if (memory.address == nullptr ||
            !platform::get_shared_pages(memory.address, rings_offset)) {
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
    /// Marks the recording as ended, and gives back the descriptor and the memory. The reader keeps
    /// its own. Threads may be in the middle of an entry, so the address range stays mapped. Its
    /// pages are replaced by untouched ones: a ring takes 512 KiB, and there is one for each
    /// thread.
    void end() noexcept {
        header().ended.store(1, std::memory_order_release);
        platform::close_shared_memory(memory_);
        memory_.file = -1;
        void* const nothing = platform::map(rings_bytes, platform::page_bytes());
        if (nothing == nullptr) return;
        if (!platform::replace_mapping(memory_.address, nothing, rings_bytes)) {
            platform::unmap(nothing, rings_bytes);
        }
    }
    /// Forgets the rings in the child of a fork, which has no access to them.
    void forget() noexcept {
        platform::close_shared_memory(memory_);
        memory_ = {};
    }

    struct Taken {
        std::size_t ring;
        RingHead* head;  // nullptr: no ring was free
        TraceEntry* entries;
    };
    /// Takes a ring for the calling thread and populates its pages.
    Taken take() noexcept {
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
    /// Counts a thread that found no ring.
    void count_left_out() noexcept { header().left_out.fetch_add(1, std::memory_order_relaxed); }
    void give_back(std::size_t ring) noexcept {
        const std::lock_guard guard(mutex_);
        taken_[ring / 64] &= ~(std::uint64_t{1} << ring % 64);
    }

    void name(TraceSource kind, std::uint64_t source, std::string_view name) noexcept {
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
    /// Returns the number of a module, from 1; 0 if there is no room for it.
    std::uint64_t number_of_module(std::string_view path) noexcept {
        const std::lock_guard guard(mutex_);
        for (std::size_t at = hash_of(path);; ++at) {
            std::uint16_t& number = module_numbers_[at % std::size(module_numbers_)];
            if (number == 0) return number = add_module(path);
            if (has_text(module_table()[number - 1].path, path)) return number;
        }
    }

    void* memory() const noexcept { return memory_.address; }
    bool is_made() const noexcept { return memory_.address != nullptr; }
    int file() const noexcept { return memory_.file; }

private:
    std::uint16_t add_module(std::string_view path) noexcept {
        const std::size_t count = header().modules.load(relaxed);
        if (count == module_count) return 0;
        module_table()[count].number = count + 1;
        store_text(module_table()[count].path, path);
        header().modules.store(count + 1, std::memory_order_release);
        return static_cast<std::uint16_t>(count + 1);
    }

    platform::SharedMemory memory_;
    // Under mutex_. A bit for each ring that a thread has taken.
    std::uint64_t taken_[ring_count / 64] = {};
    // Numbers of modules, by the hash of the path and from there on; 0: free. Half of it stays
    // free.
    std::uint16_t module_numbers_[2 * module_count] = {};
};

/// The state that recording threads share: the rings, their target, and the number of the
/// recording. The recorder changes it; a recording thread reads it on its slow path.
struct Recording {
    enum class Target : std::uint8_t { none, file, reader };

    Rings rings;
    /// Counts recordings; 0: there was none yet. Each ring of a thread belongs to one recording.
    std::atomic<std::uint64_t> number = 0;
    std::atomic<Target> target = Target::none;
    std::atomic<Control*> control = nullptr;

    Target target_now() const noexcept { return target.load(std::memory_order_relaxed); }
};

/// Ends a recording if the reader is gone or the file accepts no more data. Calls stop recording at
/// once. Everything else follows on the next slow path, because the caller may hold locks.
inline void give_up_recording() noexcept {
    auto& hooks = events::recorder_hooks;
    hooks.record.store(nullptr, std::memory_order_relaxed);
    // No real number of requests reaches this value.
    hooks.answered.store(UINT64_MAX, std::memory_order_relaxed);
}

}  // namespace tensorpool::trace
