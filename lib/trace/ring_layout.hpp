#pragma once

#include <cstddef>
#include <cstdint>

#include <tensorpool/detail/counters.hpp>
#include <tensorpool/trace_format.hpp>

/// Two pieces of memory that a recorded process shares with its recorder.
///
/// The *rings*, which the process writes and the recorder reads:
///
///     header | heads of the rings | names | modules | rings
///
/// The *control*, which the recorder writes too: what it asks for, and up to where it has read each
/// ring. The process believes none of it beyond what it checks.
///
/// A ring has one writer, the thread that it belongs to, and one reader. The writer fills an entry,
/// then adds 1 to `written` with release; the reader takes what lies between its tail and
/// `written`, then stores the tail with release. So neither ever waits. A model in
/// tests/models/trace_ring_test.cpp goes through every order of their steps.
namespace tensorpool::trace {

using detail::Counter;

inline constexpr std::uint64_t rings_magic = 0x73676e6972707465;  // "etprings" in memory
inline constexpr std::uint64_t rings_version = 1;

struct alignas(64) RingHead {
    Counter written;  // entries, ever
    Counter dropped;  // that found no room
    Counter thread;   // whose the ring is, or was last; 0: nobody's yet
};

inline constexpr std::size_t ring_count = 512;
// 512 KiB a ring: at a call every microsecond the recorder may sleep for 16 ms.
inline constexpr std::size_t ring_entries = 16'384;
inline constexpr std::size_t name_count = 1024;
inline constexpr std::size_t module_count = 512;

struct RingsHeader {
    Counter magic;  // stored last, with release
    Counter version;
    Counter bytes;
    Counter rings;          // that were ever taken
    Counter names;          // written
    Counter modules;        // written
    Counter ended;          // 1: nothing more will come, but from calls that are under way
    Counter left_out;       // threads without a ring
    Counter names_dropped;  // that found no place
    TraceProcess process;
};

inline constexpr std::size_t heads_offset = 4096;
inline constexpr std::size_t names_offset = heads_offset + ring_count * sizeof(RingHead);
inline constexpr std::size_t modules_offset = names_offset + name_count * sizeof(TraceName);
inline constexpr std::size_t rings_offset =
    (modules_offset + module_count * sizeof(TraceModule) + 4095) / 4096 * 4096;
inline constexpr std::size_t ring_bytes = ring_entries * sizeof(TraceEntry);
inline constexpr std::size_t rings_bytes = rings_offset + ring_count * ring_bytes;
static_assert(sizeof(RingsHeader) <= heads_offset);

/// Up to where a writer may write that is about to write entry `next` and found the reader at
/// `tail`: to `next` where there is no room, or where no reader can be.
constexpr std::uint64_t room_until(std::uint64_t next, std::uint64_t tail,
                                   std::uint64_t places) noexcept {
    const std::uint64_t unread = next - tail;
    return unread < places ? tail + places : next;
}

inline constexpr std::uint64_t control_magic = 0x6c746e6f63707465;  // "etpcontl" in memory
inline constexpr std::uint64_t control_version = 2;

struct Control {
    Counter magic;
    Counter version;
    Counter process;  // whose it is: its number in its own name space
    // The low half counts changes of what a recorder wants; odd: recording is wanted. The high half
    // counts requests to trim.
    Counter asked;
    Counter stack_interval;  // bytes between two sampled stacks; 0: none
    // The recorder adds to it several times a second: where it stands still, nobody reads any more.
    Counter beats;
    alignas(64) Counter tails[ring_count];
    // The answer to the last request to trim: by how much capacities fell, then, with release, its
    // number.
    Counter trimmed_bytes;
    Counter trims;
    // The background trimmer waits on it; added to and woken by who asks.
    std::atomic<std::uint32_t> wake;
};

inline constexpr std::uint64_t recording_mask = UINT32_MAX;
inline constexpr unsigned trim_shift = 32;
inline constexpr std::uint64_t one_trim = std::uint64_t{1} << trim_shift;

inline constexpr std::size_t control_bytes = 8192;
static_assert(sizeof(Control) <= control_bytes);

}  // namespace tensorpool::trace
