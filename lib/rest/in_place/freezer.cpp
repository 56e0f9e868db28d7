#include "rest/in_place/freezer.hpp"

#include "kinds/kinds.hpp"
#include "platform/process/fork_handlers.hpp"
#include "platform/threads/own_thread.hpp"

namespace tensorpool::stashing {
namespace {

// So that all of them are present: one that was never touched maps the system's page of zeros.
// Other threads may write to them.
[[gnu::no_sanitize("thread")]] void read_each_page(const FrozenRange& range) noexcept {
    const std::size_t page = platform::page_bytes();
    for (std::size_t at = 0; at < range.bytes; at += page) {
        (void)*static_cast<volatile std::byte*>(range.begin + at);
    }
}

void add(FreezeStatistics& sum, const FrozenBlock& block) noexcept {
    ++sum.blocks;
    sum.frozen_bytes += block.range().bytes;
    sum.bytes_at_rest += block.bytes_at_rest();
    sum.resident_bytes += block.resident_bytes();
    sum.faults += block.faults();
    sum.encoded_again += block.encoded_again();
}

}  // namespace

// The range begins in the block's first page.
FrozenBlock* FrozenBlocks::find_block(const void* p) noexcept {
    const auto found = lower_bound(static_cast<const std::byte*>(p));
    return found != end() && found->block() == p ? &*found : nullptr;
}

FrozenBlock* FrozenBlocks::find_range(const void* address) noexcept {
    const auto* const at = static_cast<const std::byte*>(address);
    auto behind = upper_bound(at);
    if (behind == begin()) return nullptr;
    FrozenBlock& block = *--behind;
    const auto offset = static_cast<std::size_t>(at - block.range().begin);
    return offset < block.range().bytes ? &block : nullptr;
}

Freezer& freezer() noexcept {
    static base::NeverDestroyed<Freezer> the_freezer;
    return the_freezer.get();
}

void Freezer::freeze(const FrozenBlock::Settings& settings, bool system_calls_may_fail) {
    set_up(system_calls_may_fail);
    FrozenBlock* const block = FrozenBlock::make(settings);
    if (block == nullptr) {
        throw FreezeError(block_message("freeze", settings.name, settings.block) +
                          "the system has no address space for the encoded content");
    }
    read_each_page(settings.range);
    block->set_in_use(true);
    if (!insert(*block)) {
        FrozenBlock::destroy(*block);
        throw std::invalid_argument(block_message("freeze", settings.name, settings.block) +
                                    "it is frozen already");
    }
    if (platform::watch_faults(source_, settings.range.begin, settings.range.bytes) &&
        encode_all(*block)) {
        ++block->totals().stashes;
        return end_use(*block);
    }
    ++block->totals().failures;
    std::uint32_t piece = 0;
    const bool is_whole = bring_all_back(*block, piece) == Done::yes;
    is_whole ? end(*block) : end_use(*block);
    throw FreezeError(refused_message(settings, is_whole));
}

// Two threads may have begun to freeze the same block.
bool Freezer::insert(FrozenBlock& block) noexcept {
    const std::lock_guard guard(lock_);
    if (!blocks_.insert(block).second) return false;
    (void)kinds::note_free_of(*block.pool(), const_cast<void*>(block.block()));
    return true;
}

// The lock is held for one piece at a time, so that faults are served between two pieces.
bool Freezer::encode_all(FrozenBlock& block) noexcept {
    for (std::uint32_t piece = 0; piece != block.piece_count(); ++piece) {
        const std::lock_guard guard(lock_);
        if (block.put_to_rest(piece, source_, tools_) != Done::yes) return false;
    }
    return true;
}

bool Freezer::thaw(const void* p) {
    FrozenBlock* const block = begin_use(p);
    if (block == nullptr) return false;
    std::uint32_t piece = 0;
    const Done done = bring_all_back(*block, piece);
    ++(done == Done::yes ? block->totals().restores : block->totals().failures);
    if (done == Done::yes) {
        end(*block);
        return true;
    }
    const EndOfUse end_of_use(*this, *block);  // also if there is no memory for the message
    throw FreezeError(thaw_message(*block, piece, done));
}

Done Freezer::bring_all_back(FrozenBlock& block, std::uint32_t& piece) noexcept {
    for (piece = 0; piece != block.piece_count(); ++piece) {
        const std::lock_guard guard(lock_);
        block.begin_thaw();
        const Done done = block.bring_back(piece, source_, tools_);
        if (done != Done::yes) return done;
    }
    return Done::yes;
}

// Waits while another thread freezes or thaws the block.
FrozenBlock* Freezer::begin_use(const void* p) noexcept {
    for (;;) {
        {
            const std::lock_guard guard(lock_);
            FrozenBlock* const block = blocks_.find_block(p);
            if (block == nullptr) return nullptr;
            if (!block->is_in_use()) {
                block->set_in_use(true);
                return block;
            }
        }
        std::this_thread::yield();
    }
}

void Freezer::end_use(FrozenBlock& block) noexcept {
    const std::lock_guard guard(lock_);
    block.end_use();
}

void Freezer::end(FrozenBlock& block) noexcept {
    {
        const std::lock_guard servers(kinds::block_servers());
        const std::lock_guard guard(lock_);
        take_out(block);
        kinds::forget_free_of(*block.pool(), const_cast<void*>(block.block()));
    }
    FrozenBlock::destroy(block);
}

// A fault of it that was not served yet finds no block.
void Freezer::take_out(FrozenBlock& block) noexcept {
    platform::unwatch_faults(source_, block.range().begin, block.range().bytes);
    blocks_.erase(blocks_.iterator_to(block));
}

bool Freezer::note_free(void* p) noexcept {
    FrozenBlock* block = nullptr;
    {
        const std::lock_guard guard(lock_);
        block = blocks_.find_block(p);
        if (block == nullptr) return false;
        take_out(*block);
    }
    FrozenBlock::destroy(*block);
    return true;
}

void Freezer::note_end_of(unsigned pool_number) noexcept {
    const std::lock_guard guard(lock_);
    for (auto next = blocks_.begin(); next != blocks_.end();) {
        FrozenBlock& block = *next++;
        if (block.pool()->number() != pool_number) continue;
        take_out(block);
        FrozenBlock::destroy(block);
    }
}

bool Freezer::is_frozen(const void* p) noexcept {
    const std::lock_guard guard(lock_);
    return blocks_.find_block(p) != nullptr;
}

FreezeStatistics Freezer::statistics() noexcept {
    FreezeStatistics sum;
    const std::lock_guard guard(lock_);
    for (const FrozenBlock& block : blocks_) add(sum, block);
    return sum;
}

FreezeStatistics Freezer::statistics(const void* p) noexcept {
    FreezeStatistics one;
    const std::lock_guard guard(lock_);
    if (const FrozenBlock* const block = blocks_.find_block(p)) add(one, *block);
    return one;
}

void Freezer::damage(const void* p, std::uint32_t piece) noexcept {
    const std::lock_guard guard(lock_);
    blocks_.find_block(p)->encoding(piece).back() ^= std::byte{1};
}

namespace {

using platform::ForkStage;
using platform::set_fork_handlers;

// ThreadSanitizer ends a process that starts a thread in the child of a fork.
#ifdef __SANITIZE_THREAD__
constexpr bool child_may_start_threads = false;
#else
constexpr bool child_may_start_threads = true;
#endif

void do_nothing() noexcept {}

}  // namespace

// Set when the first block is frozen, so that other programs take no lock more at a fork. The lock
// of block servers is already taken at this place if the program contains planned arenas.
bool Freezer::watch_forks() noexcept {
    (void)set_fork_handlers(
        ForkStage::planned, [] { kinds::block_servers().lock(); },
        [] { kinds::block_servers().unlock(); }, [] { kinds::block_servers().unlock(); });
    return set_fork_handlers(
               ForkStage::frozen_blocks, [] { freezer().lock_.lock(); },
               [] { freezer().lock_.unlock(); },
               [] {
                   freezer().lock_.forget_handler();
                   freezer().lock_.unlock();
               }) &&
           set_fork_handlers(ForkStage::fault_handler, do_nothing, do_nothing,
                             [] { freezer().begin_in_child(); });
}

// The child has one thread, and no piece is touched before this returns. Starting a thread calls
// malloc, so it is started after the locks of pools are released.
void Freezer::begin_in_child() noexcept {
    const State before = state_.exchange(State::none);
    const platform::FaultSource of_parent = std::exchange(source_, {});
    if (before == State::running) platform::close_fault_source(of_parent);
    if (blocks_.empty()) return;
    if (child_may_start_threads && serve_in_child(of_parent.scope)) {
        state_ = State::running;
        return;
    }
    thaw_in_child();
}

// A parent that has given up rights since may have a source that its child cannot open: system
// calls of the child must not fail where those of the parent work.
bool Freezer::serve_in_child(platform::FaultScope scope) noexcept {
    source_ = platform::open_fault_source(max_scope_);
    bool is_served = source_.scope >= scope;
    for (FrozenBlock& block : blocks_) {
        block.begin_anew();
        is_served =
            is_served && platform::watch_faults(source_, block.range().begin, block.range().bytes);
    }
    if (is_served && start_handler()) return true;
    // Closing it ends the watch of all ranges.
    if (source_.file >= 0) platform::close_fault_source(source_);
    source_ = {};
    return false;
}

void Freezer::thaw_in_child() noexcept {
    while (!blocks_.empty()) {
        FrozenBlock& block = *blocks_.begin();
        for (std::uint32_t piece = 0; piece != block.piece_count(); ++piece) {
            const Done done = block.bring_back_unwatched(piece, tools_);
            if (done != Done::yes) fail(block, piece, done);
        }
        end(block);
    }
}

namespace {

using platform::FaultScope;

constexpr const char* no_faults =
    "tensorpool: freeze: the system lets this process serve no page faults: userfaultfd(2) with "
    "protection from writes, which Linux has since 5.7, is missing or refused; use a Stash instead";
constexpr const char* user_mode_only =
    "tensorpool: freeze: the system lets this process serve page faults of instructions only, so a "
    "system call that reads or writes a frozen block would fail with EFAULT; accept that by "
    "FreezeOptions::system_calls_may_fail, or use a Stash; all faults are allowed by "
    "vm.unprivileged_userfaultfd=1, by access to /dev/userfaultfd, or with CAP_SYS_PTRACE";

}  // namespace

// Other threads wait until the set-up ends. It calls malloc, so no lock is held.
void Freezer::set_up(bool system_calls_may_fail) {
    for (State seen = State::none; !state_.compare_exchange_weak(seen, State::starting);
         seen = State::none) {
        if (seen == State::running) {
            const bool suffices = source_.scope == FaultScope::all || system_calls_may_fail;
            return suffices ? void() : throw FreezeError(user_mode_only);
        }
        std::this_thread::yield();
    }
    try {
        try_set_up(system_calls_may_fail);
    } catch (...) {
        if (source_.file >= 0) platform::close_fault_source(source_);
        source_ = {};
        state_ = State::none;
        throw;
    }
    const std::lock_guard guard(lock_);
    state_ = is_handler_lost_ ? State::none : State::running;
}

void Freezer::try_set_up(bool system_calls_may_fail) {
    source_ = platform::open_fault_source(max_scope_);
    if (source_.scope == FaultScope::none || !platform::decommit_keeps_access()) {
        throw FreezeError(no_faults);
    }
    if (source_.scope == FaultScope::user_mode && !system_calls_may_fail) {
        throw FreezeError(user_mode_only);
    }
    if (!tools_.is_set_up() && !tools_.set_up()) {
        throw FreezeError("tensorpool: freeze: the system has no memory for the decoder");
    }
    if (!watch_forks()) {
        throw FreezeError("tensorpool: freeze: the system has no memory for handlers of forks");
    }
    // It may be a server already: this may be the child of a fork, or an earlier set-up failed.
    kinds::block_servers().leave(*this);
    kinds::block_servers().enter(*this);
    if (!start_handler()) {
        throw FreezeError("tensorpool: freeze: the system starts no thread to serve page faults");
    }
}

bool Freezer::start_handler() noexcept {
    is_handler_lost_ = false;
    const platform::OwnThread handler = platform::start_own_thread(
        "tensorpool-thaw", [] { freezer().serve_faults(); }, platform::Priority::same);
    if (handler) platform::detach_own_thread(handler);
    return static_cast<bool>(handler);
}

void Freezer::serve_faults() noexcept {
    platform::PageFault fault;
    while (platform::next_fault(source_, fault)) {
        lock_.lock_as_handler();
        serve(fault);
        lock_.unlock();
    }
    lock_.lock_as_handler();
    if (!blocks_.empty()) fail_without_source();
    // A block that is frozen now is refused; the next one gets another source and handler.
    platform::close_fault_source(source_);
    is_handler_lost_ = true;
    if (state_ == State::running) state_ = State::none;
    lock_.unlock();
}

void Freezer::fail_without_source() noexcept {
    platform::fail(
        "freeze: %s descriptor %d, through which the page faults of %zu frozen blocks are served",
        platform::is_open(source_) ? "the system refused to read" : "the program closed",
        source_.file, blocks_.size());
}

// A thread may still wait for a block that was thawed or freed since, or touch a block that the
// system refused to take out of the source.
void Freezer::serve(const platform::PageFault& fault) noexcept {
    FrozenBlock* const block = blocks_.find_range(fault.address);
    if (block == nullptr) {
        platform::unwatch_faults(source_, fault.address, platform::page_bytes());
        return platform::wake_faults(source_, fault.address, platform::page_bytes());
    }
    const std::uint32_t piece = block->piece_of(fault.address);
    const Done done = block->serve(piece, fault.is_write, source_, tools_);
    if (done != Done::yes) fail(*block, piece, done);
    block->make_room(source_, tools_);
}

// No error can be reported to the thread that waits for the piece.
void Freezer::fail(const FrozenBlock& block, std::uint32_t piece, Done done) noexcept {
    if (state_ == State::running && !platform::is_open(source_)) fail_without_source();
    const bool has_name = *block.name() != '\0';
    platform::fail("freeze: %s%s%sblock %p: piece %u of %u cannot come back: %s",
                   has_name ? "'" : "", block.name(), has_name ? "', " : "", block.block(), piece,
                   block.piece_count(), reason_of(done));
}

}  // namespace tensorpool::stashing
