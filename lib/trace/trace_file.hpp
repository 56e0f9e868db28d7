#pragma once

#include <algorithm>
#include <cstring>
#include <iterator>
#include <new>
#include <thread>

#include "base/lockable.hpp"
#include "events/recorder_hooks.hpp"
#include "platform/cycle_counter.hpp"
#include "platform/files/trace_output.hpp"
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

/// Returns nanoseconds since 1970 UTC by a clock that never jumps: the monotonic clock, which is
/// set by the wall clock at the first call in the process. Readers compute the length of a cycle
/// from two such times, so an adjusted wall clock must not lie between them.
inline std::uint64_t steady_unix_ns() noexcept {
    static constinit std::atomic<std::uint64_t> offset = 0;
    const std::uint64_t now = platform::monotonic_clock_ns();
    // Relaxed: the number is all there is. The first thread sets it.
    std::uint64_t known = offset.load(std::memory_order_relaxed);
    if (known == 0) {
        const std::uint64_t mine = platform::wall_clock_ns() - now;
        if (offset.compare_exchange_strong(known, mine, std::memory_order_relaxed)) known = mine;
    }
    return now + known;
}

/// The file of a recording. A thread whose ring is full writes the ring out, uncompressed. The
/// thread that ends the process writes out all rings.
class TraceFile : public base::Lockable {
public:
    constexpr explicit TraceFile(Recording& recording) noexcept : recording_(recording) {}

    /// Opens `path` and writes the headers that precede all entries. Reports a file that cannot be
    /// written on stderr and returns false.
    bool open(const char* path) noexcept {
        if (!output_.open(path)) {
            platform::say(
                "TENSORPOOL_TRACE is '%.200s', which cannot be written: %s; used instead: no "
                "recording",
                path, output_.problem());
            return false;
        }
        TraceHeader header{.magic = {},
                           .version = trace_version,
                           .header_bytes = sizeof(TraceHeader),
                           .reserved = {}};
        std::memcpy(header.magic, trace_magic, sizeof trace_magic);
        names_written_ = modules_written_ = 0;
        const TraceProcess& process = recording_.rings.header().process;
        if (!output_.append({&header, sizeof header}, {nullptr, 0}) ||
            !write_chunk(TraceChunkKind::process, 0, &process, sizeof process)) {
            platform::say(
                "TENSORPOOL_TRACE is '%.200s', which accepts no data; used instead: no recording",
                path);
            output_.close();
            return false;
        }
        return true;
    }
    bool is_open() const noexcept { return output_.is_open(); }
    /// Writes one ring out. Returns false if another thread is doing so, or if the file accepts no
    /// more data, which ends the recording.
    bool write_out(std::size_t ring) noexcept { return claim(ring) && write_claimed(ring); }
    /// Writes all rings out and marks the end of the recording. Other threads may continue during
    /// the call. Their further entries are lost.
    void finish() noexcept {
        const bool was_on = events::recorder_hooks.record.exchange(nullptr, relaxed) != nullptr;
        const std::size_t rings = recording_.rings.header().rings.load(std::memory_order_acquire);
        bool done = was_on;
        for (std::size_t ring = 0; done && ring < rings; ++ring) done = write_out_or_leave(ring);
        if (done) (void)write_chunk(TraceChunkKind::end, 0, nullptr, 0);
    }

    /// Closes the file in the child of a fork, which does not write to it. REQUIRES: locked.
    void forget() noexcept {
        output_.close();
        for (auto& writes : writes_) writes.store(false, relaxed);  // set by threads of the parent
    }

private:
    bool claim(std::size_t ring) noexcept {
        return !writes_[ring].exchange(true, std::memory_order_acquire);
    }
    // Runs at exit. Waits a moment for a thread that is writing its ring out, but not forever: if a
    // signal ends the process, it may be this thread.
    bool write_out_or_leave(std::size_t ring) noexcept {
        constexpr unsigned max_waits = 10'000;
        for (unsigned waits = 0; !claim(ring); ++waits) {
            if (waits == max_waits) return true;
            std::this_thread::yield();
        }
        return write_claimed(ring);
    }
    // With a file as the target, the control belongs to this process, and its tails say what was
    // written out.
    bool write_claimed(std::size_t ring) noexcept {
        const RingHead& head = recording_.rings.head(ring);
        Counter& tail = recording_.control.load(relaxed)->tails[ring];
        bool done = write_names();
        for (std::uint64_t from = tail.load(relaxed),
                           until = head.written.load(std::memory_order_acquire);
             done && from != until;) {
            const std::uint64_t begin = from % ring_entries;
            const std::uint64_t count = std::min(until - from, ring_entries - begin);
            done = write_chunk(TraceChunkKind::entries, ring,
                               recording_.rings.entries(ring) + begin, count * sizeof(TraceEntry));
            from += count;
            if (done) tail.store(from, relaxed);
        }
        writes_[ring].store(false, std::memory_order_release);
        if (!done) stop();
        return done;
    }
    // Names are written before the entries that refer to them by number.
    bool write_names() noexcept {
        const std::lock_guard guard(mutex_);
        const std::uint64_t names = recording_.rings.header().names.load(std::memory_order_acquire);
        const std::uint64_t modules =
            recording_.rings.header().modules.load(std::memory_order_acquire);
        if (names != names_written_ &&
            !write_chunk(TraceChunkKind::names, 0, recording_.rings.name_table() + names_written_,
                         (names - names_written_) * sizeof(TraceName))) {
            return false;
        }
        names_written_ = names;
        if (modules != modules_written_ &&
            !write_chunk(TraceChunkKind::modules, 0,
                         recording_.rings.module_table() + modules_written_,
                         (modules - modules_written_) * sizeof(TraceModule))) {
            return false;
        }
        modules_written_ = modules;
        return true;
    }
    bool write_chunk(TraceChunkKind kind, std::size_t ring, const void* data,
                     std::size_t bytes) noexcept {
        const bool has_ring = kind == TraceChunkKind::entries;
        TraceChunkHeader header{
            .magic = trace_chunk_magic,
            .kind = kind,
            .compression = TraceCompression::none,
            .process = static_cast<std::uint32_t>(recording_.rings.header().process.process),
            .ring = static_cast<std::uint32_t>(ring),
            .stored_bytes = bytes,
            .bytes = bytes,
            .cycles = platform::cycle_counter(),
            .unix_ns = steady_unix_ns(),
            .dropped = has_ring ? recording_.rings.head(ring).dropped.load(relaxed) : 0,
            .check = 0};
        std::uint64_t words[7];
        std::memcpy(words, &header, sizeof words);
        header.check = trace_check(words);
        return output_.append({&header, sizeof header}, {data, bytes});
    }
    // A full disk stops the recording and nothing else.
    void stop() noexcept {
        if (events::recorder_hooks.record.exchange(nullptr, relaxed) == nullptr) return;
        give_up_recording();
        platform::say(
            "recording into '%s' ended: it accepts no more data; what is in it can be read",
            output_.path());
    }

    Recording& recording_;
    platform::TraceOutput output_;
    std::atomic<bool> writes_[ring_count] = {};  // set by the thread that writes the ring out
    std::uint64_t names_written_ = 0;            // under mutex_, like the next
    std::uint64_t modules_written_ = 0;
};

}  // namespace tensorpool::trace
