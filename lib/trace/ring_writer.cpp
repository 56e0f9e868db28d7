#include "trace/ring_writer.hpp"

#include <utility>

#include <tensorpool/export.hpp>

namespace tensorpool::trace {
namespace {

constexpr auto relaxed = std::memory_order_relaxed;

// A thread without a ring looks for one again after this many calls: another thread may have ended.
constexpr std::uint64_t calls_between_looks = 1024;
// The reader counts as gone if a ring stays full and the reader shows no activity for this long.
constexpr std::uint64_t max_silence_ns = 10'000'000'000;

// A deeper stack loses its outermost frames.
constexpr std::size_t max_frames = 48;

constexpr bool is_allocation(TraceAction action) noexcept {
    return action == TraceAction::allocate || action == TraceAction::arena_allocate ||
           action == TraceAction::scratch_allocate;
}

constinit thread_local OwnRing own_ring TENSORPOOL_INITIAL_EXEC;

}  // namespace

void RingWriter::record(TraceAction action, std::uint64_t source, const void* address,
                        std::size_t bytes, std::size_t alignment) noexcept {
    OwnRing& own = own_ring;
    if (own.next == own.room_until || own.recording != recording_.number.load(relaxed))
        [[unlikely]] {
        if (!make_room(own)) return;
    }
    TraceEntry& entry = own.begin_entry();
    // A block can pass from the thread that frees it to the thread that takes it almost
    // immediately, so frees need an ordered counter. In the other direction the block waits in a
    // magazine. The ordering costs 10 ns, so only frees pay for it.
    entry.cycles = action == TraceAction::deallocate ? platform::ordered_cycle_counter()
                                                     : platform::cycle_counter();
    entry.address = reinterpret_cast<std::uintptr_t>(address);
    entry.bytes = bytes;
    entry.source = static_cast<std::uint32_t>(source);
    entry.action = action;
    entry.alignment_log2 = static_cast<std::uint8_t>(std::countr_zero(alignment));
    entry.reserved = 0;
    own.end_entry();
    if (is_allocation(action) && own.sampling.takes(bytes)) [[unlikely]]
        write_stack(own);
}

// Writes as many entries as the stack needs, or none: half a stack would look like another stack.
void RingWriter::write_stack(OwnRing& own) noexcept {
    platform::ProgramFrame frames[max_frames];
    platform::StackBuffers buffers;
    const std::size_t count = platform::capture_program_stack(frames, max_frames, buffers);
    const std::size_t entries = (count + 2) / 3;
    if (own.room_until - own.next < entries && !find_room(own)) return;
    if (own.room_until - own.next < entries) return;
    for (std::size_t i = 0; i < count; i += 3) {
        TraceFrames some{};
        some.action = TraceAction::frames;
        some.count = static_cast<std::uint8_t>(std::min<std::size_t>(3, count - i));
        some.last = i + 3 >= count ? 1 : 0;
        for (std::size_t k = 0; k < some.count; ++k) {
            some.frames[k] = platform::word_of<48, sizeof(TraceModule::path) - 1>(
                frames[i + k],
                [&](std::string_view path) { return recording_.rings.number_of_module(path); });
        }
        own.write(std::bit_cast<TraceEntry>(some));
    }
}

// Called ahead of time, since it may allocate in a C library whose malloc a pool serves.
void RingWriter::prepare() noexcept {
    (void)make_room(own_ring);
}

bool RingWriter::make_room(OwnRing& own) noexcept {
    const std::uint64_t recording = recording_.number.load(std::memory_order_acquire);
    if (own.recording != recording) own = {.recording = recording};
    if (own.entries == nullptr && !take_ring(own)) return false;
    if (has_room(own) && (own.is_announced || announce(own))) return true;
    own.head->dropped.store(own.head->dropped.load(relaxed) + 1, relaxed);
    return false;
}

bool RingWriter::take_ring(OwnRing& own) noexcept {
    if (own.calls_until_look != 0) {
        --own.calls_until_look;
        return false;
    }
    // Set before the ring is taken, so that calls made from here (in a C library that allocates)
    // are not recorded.
    own.calls_until_look = calls_between_looks;
    const Rings::Taken taken = recording_.rings.take();
    if (taken.head == nullptr) {
        if (!std::exchange(own.is_left_out, true)) recording_.rings.count_left_out();
        return false;
    }
    // Without the exit handler, the ring stays this thread's after its end, which wastes a ring.
    (void)platform::call_at_thread_exit(exit_handler_);
    own.ring = taken.ring;
    own.head = taken.head;
    own.next = own.room_until = own.head->written.load(relaxed);
    own.sampling.begin(recording_.rings.header().process.stack_interval,
                       platform::current_thread_id());
    own.entries = taken.entries;
    return true;
}

// REQUIRES: there is room for one entry.
bool RingWriter::announce(OwnRing& own) noexcept {
    const std::uint64_t thread = platform::current_thread_id();
    own.is_announced = true;
    own.head->thread.store(thread, relaxed);
    own.write({.cycles = platform::cycle_counter(),
               .address = thread,
               .bytes = 0,
               .source = 0,
               .action = TraceAction::thread,
               .alignment_log2 = 0,
               .reserved = 0});
    return has_room(own);
}

// The tail that the reader stores is trusted only if it is a possible value.
bool RingWriter::find_room(OwnRing& own) noexcept {
    if (recording_.target_now() == Recording::Target::file && !file_.write_out(own.ring))
        return false;
    const Control* const control = recording_.control.load(relaxed);
    const std::uint64_t tail = recording_.target_now() == Recording::Target::file
                                   ? own.next
                                   : control->tails[own.ring].load(std::memory_order_acquire);
    own.room_until = trace::room_until(own.next, tail, ring_entries);
    if (own.room_until != own.next) {
        own.full_since_ns = 0;
        return true;
    }
    if (!is_read(own)) give_up_recording();
    return false;
}

bool RingWriter::is_read(OwnRing& own) noexcept {
    if (own.head->dropped.load(relaxed) % ring_entries != 0) return true;
    const std::uint64_t beats = recording_.control.load(relaxed)->beats.load(relaxed);
    const std::uint64_t now = platform::monotonic_clock_ns();
    const bool went_back = now < own.full_since_ns;
    if (own.full_since_ns == 0 || beats != own.beats_seen || went_back) {
        own.full_since_ns = now;
        own.beats_seen = beats;
    }
    return now - own.full_since_ns < max_silence_ns;
}

void RingWriter::end_thread() noexcept {
    OwnRing& own = own_ring;
    if (own.entries != nullptr && own.recording == recording_.number.load(relaxed)) {
        recording_.rings.give_back(own.ring);
    }
    own = {};
}

}  // namespace tensorpool::trace
