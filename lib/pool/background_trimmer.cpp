#include "pool/background_trimmer.hpp"

#include "events/recorder_hooks.hpp"
#include "kinds/free_memory.hpp"
#include "limits/pressure_watch.hpp"
#include "platform/process/fork_handlers.hpp"
#include "pool/pool.hpp"

namespace tensorpool::detail {
inline namespace abi_2 {
namespace {

// With `BackgroundTrim::automatic`, the trimmer leaves this much free memory where it is.
constexpr std::uint64_t max_free_untrimmed = std::uint64_t{64} << 20;
// A pass over the pools costs microseconds. Memory that was free for a whole period is returned at
// most a twentieth of the period later.
constexpr std::uint64_t looks_in_a_period = 20;
// The minimum pause between passes. With short periods, memory is returned later than that.
constexpr std::uint64_t min_pause_ns = 10'000'000;
// A thread touches 2 GiB of memory in a second at most.
constexpr std::uint64_t bytes_touched_a_ns = 2;
// If so many times as much is available as a pool holds free, no limit is near.
constexpr std::size_t much_more = 16;

// The exact sum over all threads, which only the trimmer's thread takes.
bool has_much_to_trim(const kinds::PoolParts& pool) noexcept {
    if (pool.options.retain.background == BackgroundTrim::on) return true;
    const std::uint64_t in_use = pool.counters.in_use_bytes();
    const std::uint64_t capacity = pool.heap.capacity().bytes();
    return capacity - std::min(capacity, in_use) > max_free_untrimmed;
}

// Runs while the library is loaded, before there are other threads. The global pool reads the same
// variable in the program's first allocation, which must not start a thread.
bool begin() noexcept {
    BackgroundTrimmer& trimmer = background_trimmer();
    trimmer.watch_forks();
    const BackgroundTrim wish = background_trim_from_environment();
    if (wish != BackgroundTrim::off) trimmer.wanted(wish);
    if (wish == BackgroundTrim::on) trimmer.start_if_wanted();
    return true;
}
[[maybe_unused]] const bool begins_early = begin();

// The pause on systems without fences of all threads: there the trimmer cannot detect a call that
// arrives while it goes to sleep.
constexpr std::uint64_t pause_without_fences_ns = 1'000'000'000;
// The pause while a trim request is pending because a fork is in progress.
constexpr std::uint64_t pause_before_answer_ns = 10'000'000;

// A callback on the trimmer's thread may fork. In the child that thread is the only one, and it no
// longer acts as the trimmer.
enum class Role : std::uint8_t { other, trimmer, former_trimmer };
constinit thread_local Role role TENSORPOOL_INITIAL_EXEC = Role::other;

}  // namespace

// If no call was made during a period, everything that is free now was free for the whole period,
// whether it lies in magazines, depots, the large-block cache or the page heap.
std::uint64_t Pool::look_in_background(Moment moment, pages::Changes& changes) noexcept {
    if (parts_.options.retain.background == BackgroundTrim::off) return platform::no_timeout;
    const std::uint64_t calls = parts_.counters.allocations() + parts_.counters.deallocations();
    if (calls != idle_.calls) idle_ = {.calls = calls, .since_ns = moment.now_ns};
    if (idle_.is_trimmed) return platform::no_timeout;
    const std::uint64_t whole = std::uint64_t{parts_.options.retain.milliseconds} * 1'000'000;
    const std::uint64_t period = moment.is_memory_short ? whole / 10 : whole;
    // A clock that went back ends the period, as in `Retention`.
    const std::uint64_t idle_for =
        moment.now_ns < idle_.since_ns ? period : moment.now_ns - idle_.since_ns;
    // What others take cannot be seen from here, except by looking more often as less is available.
    std::uint64_t max_pause = platform::no_timeout;
    if (const std::size_t bytes = kinds::unoffered_bytes(parts_); bytes >= OfferPace::min_bytes) {
        if (bytes > moment.available_bytes) {
            kinds::offer_free(parts_, changes);
            offer_pace_.begin_again(kinds::unoffered_bytes(parts_));
        }
        if (moment.available_bytes / much_more < bytes) {
            max_pause = std::max(moment.available_bytes / bytes_touched_a_ns, min_pause_ns);
        }
    }
    if (!has_much_to_trim(parts_)) {
        if (idle_for >= period) return max_pause;
        return std::min(std::max(period - idle_for, min_pause_ns), max_pause);
    }
    if (idle_for >= period) {
        idle_.is_trimmed =
            kinds::empty_caches(parts_, blocks::BucketDepot::Magazines::destroy, changes);
        parts_.heap.give_back(SIZE_MAX, changes);
        parts_.buckets.drop_free_pages();
        // A thread inside a slow path keeps what it parks, and may not call again.
        return idle_.is_trimmed ? platform::no_timeout : min_pause_ns;
    }
    kinds::keep_to_retention(parts_, changes);
    return std::max(std::min({period - idle_for, period / looks_in_a_period, max_pause}),
                    min_pause_ns);
}

constinit base::NeverDestroyed<BackgroundTrimmer> the_background_trimmer;

void BackgroundTrimmer::start_if_wanted() noexcept {
    // `start` checks both again.
    if (state_.load(std::memory_order_relaxed) != State::none || !is_allowed_.load()) return;
    if (wants(BackgroundTrim::on) ||
        (wants(BackgroundTrim::automatic) && !platform::is_single_threaded())) {
        start();
    }
}

void BackgroundTrimmer::start() noexcept {
    State none = State::none;
    if (!state_.compare_exchange_strong(none, State::starting)) return;
    if (!is_allowed_) {
        state_ = State::none;
        return;
    }
    ends_ = false;
    (void)platform::prepare_fences();  // without them the trimmer checks once a second
    word_ = events::recorder_hooks.wake.load(std::memory_order_acquire);
    thread_ = platform::start_own_thread("tensorpool-trim", [] { background_trimmer().run(); });
    state_ = thread_ ? State::running : State::refused;
}

void BackgroundTrimmer::allow(bool is_allowed) noexcept {
    is_allowed_ = is_allowed;
    if (is_allowed) {
        State refused = State::refused;
        state_.compare_exchange_strong(refused, State::none);
        start_if_wanted();
        return;
    }
    // Another thread may be starting or ending the trimmer.
    for (State state = State::running; !state_.compare_exchange_weak(state, State::ending);
         state = State::running) {
        if (state == State::none || state == State::refused) return;
        std::this_thread::yield();
    }
    ends_ = true;
    platform::wake_waiter(*word_.load());
    platform::join_own_thread(thread_);
    thread_ = {};
    state_ = State::none;
}

void BackgroundTrimmer::wake() noexcept {
    if (events::is_unnoticed_child()) return;  // it has no thread, and may lack the word
    if (sleeps_.exchange(false)) platform::wake_waiter(*word_.load());
}

// The word to wait on may change while the thread runs: once other processes can request a trim, it
// is the word through which they wake this process.
void BackgroundTrimmer::run() noexcept {
    role = Role::trimmer;
    for (;;) {
        std::atomic<std::uint32_t>* const word =
            events::recorder_hooks.wake.load(std::memory_order_acquire);
        word_ = word;
        const std::uint32_t seen = word->load(std::memory_order_acquire);
        if (ends_) break;
        // Before there is a segment, nothing is to be trimmed, and no other process can request it.
        const bool has_segment = statistics::segment().header() != nullptr;
        if (has_segment) events::look_for_recorder();
        if (word != events::recorder_hooks.wake.load(std::memory_order_acquire)) continue;
        const std::uint64_t pause = pause_after_look();
        if (role == Role::former_trimmer) break;
        const bool is_due = has_segment && events::is_answer_due();
        platform::wait_on(*word, seen, is_due ? std::min(pause, pause_before_answer_ns) : pause);
        sleeps_.store(false, std::memory_order_relaxed);
    }
}

// `sleeps_` is set before the last pass over the pools. A slow path whose effect that pass misses
// sees `sleeps_` set, and wakes the thread.
std::uint64_t BackgroundTrimmer::pause_after_look() noexcept {
    const std::uint64_t pause = look(platform::monotonic_clock_ns());
    if (pause != platform::no_timeout) return pause;
    sleeps_.store(true, std::memory_order_relaxed);
    if (!platform::fence_all_threads()) return pause_without_fences_ns;
    return look(platform::monotonic_clock_ns());
}

std::uint64_t BackgroundTrimmer::look(std::uint64_t now_ns) noexcept {
    std::uint64_t pause = platform::no_timeout;
    // Determined once for all pools, because it reads files of the system.
    const Pool::Moment moment{.now_ns = now_ns,
                              .is_memory_short = limits::commit_budget().short_of_memory(),
                              .available_bytes = limits::commit_budget().available()};
    pool_list().visit([&](Pool& pool) {
        pages::Changes changes;
        {
            const std::lock_guard guard(mutex_);
            pause = std::min(pause, pool.look_in_background(moment, changes));
        }
        pool.report(changes);
    });
    limits::look_at_pressure();
    const bool has_holders = limits::budgets().holder_count.load(std::memory_order_relaxed) != 0;
    return has_holders ? std::min(pause, limits::PressureWatch::pause_ns) : pause;
}

void BackgroundTrimmer::watch_forks() noexcept {
    // The child has no trimmer thread, or the thread leaves its loop there.
    (void)platform::set_fork_handlers(
        platform::ForkStage::trimmer, [] { background_trimmer().lock(); },
        [] { background_trimmer().unlock(); },
        [] {
            background_trimmer().forget_thread();
            background_trimmer().unlock();
        });
    // In a child, this is called when all locks of the library are released. With `automatic`, the
    // child starts a thread after its own first one. A child whose only thread was the trimmer's
    // ends with that thread.
    (void)platform::set_fork_handlers(
        platform::ForkStage::trimmer_thread, [] {}, [] {},
        [] {
            BackgroundTrimmer& trimmer = background_trimmer();
            if (role == Role::other && trimmer.wants(BackgroundTrim::on)) trimmer.start_if_wanted();
        });
    (void)platform::set_fork_handlers(
        platform::ForkStage::pool_list, [] { pool_list().lock(); }, [] { pool_list().unlock(); },
        [] {
            pool_list().forget_visits();
            pool_list().unlock();
        });
}

void BackgroundTrimmer::forget_thread() noexcept {
    if (role == Role::trimmer) role = Role::former_trimmer;
    thread_ = {};
    sleeps_ = false;
    state_ = State::none;
}

void program_created_thread() noexcept {
    background_trimmer().start_if_wanted();
}

}  // namespace abi_2
}  // namespace tensorpool::detail

namespace tensorpool {

void allow_background_trimmer(bool allowed) noexcept {
    detail::background_trimmer().allow(allowed);
}

}  // namespace tensorpool
