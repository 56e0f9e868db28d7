#include "models/handle_program.hpp"

#include <algorithm>
#include <stdexcept>
#include <string>
#include <thread>
#include <utility>

namespace tensorpool::testing {
namespace {

bool is_arena(SourceKind kind) {
    return kind == SourceKind::arena || kind == SourceKind::context;
}

// A scratch belongs to its thread.
bool is_free(const LivingBlock& block) {
    return block.handle != nullptr && block.kind != SourceKind::scratch;
}

}  // namespace

HandleProgram::~HandleProgram() {
    give_up_all();
}

// Gives up the blocks of handles that live, so that a program that found a fault ends.
void HandleProgram::give_up_all() {
    for (std::vector<LivingBlock>* const blocks : {&blocks_, &scratch_}) {
        for (LivingBlock& block : *blocks) {
            if (block.handle != nullptr) (void)block.handle->release();
        }
        blocks->clear();
    }
    while (!scopes_.empty()) scopes_.pop_back();
}

void HandleProgram::run(int steps) {
    if (uses_plan_) world_.sources.planned().begin_iteration();
    try {
        for (int i = 0; i < steps && !at_end(); ++i) step();
        while (!scopes_.empty()) close_scope();
        close_scope();
    } catch (...) {
        give_up_all();
        throw;
    }
    if (uses_plan_) world_.sources.planned().end_iteration();
}

void HandleProgram::step() {
    const std::size_t what = below(20);
    if (what < 7 && blocks_.size() < 30) return make();
    if (what < 11) return end(take());
    if (what < 13) return move_or_swap();
    if (what < 14) return end_in_assignment();
    if (what < 15) return give_up(take());
    if (what < 16) return pass_on(take());
    if (what < 18) return take_over();
    change_scope();
}

void HandleProgram::make() {
    const auto kind = static_cast<SourceKind>(below(source_kinds));
    if (kind == SourceKind::planned && !uses_plan_) return;
    // Few sizes, so that freed blocks are soon used again.
    std::size_t bytes = 1 + 64 * below(6) + (below(20) == 0 ? 100'000 : 0);
    std::size_t alignment = below(4) == 0 ? std::size_t{1} << below(9) : 64;
    if (const std::size_t gap = bytes_to_an_outdated_end(kind); gap != 0) {
        bytes = gap;
        alignment = 64;
    }
    LivingBlock block;
    block.kind = kind;
    block.scope = scopes_.size();
    block.used_before = used(kind);
    block.handle = std::make_unique<PooledAllocation>(world_.sources.make(kind, bytes, alignment));
    world_.bytes.add(block.handle->get(), bytes, alignment);
    if (Arena* const arena = world_.sources.arena_of(kind)) {
        block.begin = world_.sources.offset_in(*arena, block.handle->get());
        block.end = block.begin + (bytes + 63) / 64 * 64;
    }
    if (kind == SourceKind::scratch) {
        scratch_used_ = used(kind);
        scratch_.push_back(std::move(block));
    } else {
        put(std::move(block));
    }
}

// Returns the bytes from the top of an arena to where the block of an outdated handle ended; 0 if
// there is none above.
std::size_t HandleProgram::bytes_to_an_outdated_end(SourceKind kind) const {
    const std::size_t top = used(kind);
    for (const LivingBlock& block : blocks_) {
        if (block.kind == kind && block.is_outdated && block.end > top) return block.end - top;
    }
    return 0;
}

void HandleProgram::put(LivingBlock block) {
    if (block.kind != SourceKind::scratch) return blocks_.push_back(std::move(block));
    for (LivingBlock& one : scratch_) {
        if (one.used_before == block.used_before) one.handle = std::move(block.handle);
    }
}

LivingBlock HandleProgram::take() {
    LivingBlock taken;
    LivingBlock* const one = scratch_.empty() ? nullptr : &scratch_[below(scratch_.size())];
    if (one != nullptr && one->handle != nullptr && (blocks_.empty() || below(6) == 0)) {
        taken = std::move(*one);  // its place remains
    } else if (!blocks_.empty()) {
        std::swap(blocks_[below(blocks_.size())], blocks_.back());
        taken = std::move(blocks_.back());
        blocks_.pop_back();
    }
    return taken;
}

void HandleProgram::end(LivingBlock block) {
    if (block.handle == nullptr) return;
    leave_map(block);
    const std::size_t before = used(block.kind);
    if (is_free(block) && below(20) == 0) {
        std::thread([&] { block.handle.reset(); }).join();
    } else if (below(2) == 0) {
        block.handle->reset();
    }
    block.handle.reset();
    check_end(block, before);
}

// The handle of one block takes over that of another.
void HandleProgram::end_in_assignment() {
    LivingBlock ended = take();
    if (ended.handle == nullptr) return;
    LivingBlock kept = take();
    if (kept.handle == nullptr) return end(std::move(ended));
    leave_map(ended);
    const std::size_t before = used(ended.kind);
    *ended.handle = std::move(*kept.handle);
    check_end(ended, before);
    kept.handle = std::move(ended.handle);
    put(std::move(kept));
}

void HandleProgram::move_or_swap() {
    const std::size_t count = blocks_.size() + scratch_.size();
    if (count == 0) return;
    LivingBlock& one = at(below(count));
    LivingBlock& other = at(below(count));
    if (one.handle == nullptr || other.handle == nullptr) return;
    one.handle->swap(*other.handle);
    std::swap(one.handle, other.handle);
    one.handle = std::make_unique<PooledAllocation>(std::move(*one.handle));
}

void HandleProgram::give_up(LivingBlock block) {
    // A block that a faulty source took early must not be freed again.
    const bool is_faulty = world_.sources.is_faulty(block.kind);
    if (!is_free(block) || is_faulty) return end(std::move(block));
    leave_map(block);
    void* const address = block.handle->release();
    if (*block.handle) throw std::runtime_error("a released handle owns a block");
    world_.sources.end_released(block.kind, address);
}

void HandleProgram::pass_on(LivingBlock block) {
    if (!is_free(block)) return end(std::move(block));
    const std::lock_guard guard(world_.mutex);
    world_.left.push_back(std::move(block));
}

void HandleProgram::take_over() {
    const std::lock_guard guard(world_.mutex);
    if (world_.left.empty()) return;
    std::swap(world_.left[below(world_.left.size())], world_.left.back());
    put(std::move(world_.left.back()));
    world_.left.pop_back();
}

void HandleProgram::change_scope() {
    if (scopes_.empty() || below(2) == 0) {
        if (scopes_.size() < 3)
            scopes_.push_back({used(SourceKind::scratch), std::make_unique<ScratchScope>()});
    } else {
        close_scope();
    }
}

// Ends the handles of the innermost scope, and the scope; outside of any, those made outside.
void HandleProgram::close_scope() {
    const auto ends = [&](const LivingBlock& block) {
        return block.handle != nullptr && block.scope == scopes_.size();
    };
    for (;;) {
        const auto one = std::find_if(scratch_.begin(), scratch_.end(), ends);
        if (one == scratch_.end()) break;
        end(std::move(*one));
    }
    if (scopes_.empty()) return;
    scratch_used_ = scopes_.back().used_before;
    scopes_.pop_back();
    while (!scratch_.empty() && scratch_.back().scope > scopes_.size()) scratch_.pop_back();
    check_scratch();
}

void HandleProgram::release_arenas() {
    leave_all();
    for (const SourceKind kind : {SourceKind::arena, SourceKind::context}) {
        Arena& arena = *world_.sources.arena_of(kind);
        std::size_t mark = 0;
        // A mark lies between blocks: at the end of one that lives, or at the beginning.
        for (const LivingBlock& block : world_.left) {
            if (block.kind == kind && !block.is_outdated && below(3) == 0) mark = block.end;
        }
        for (LivingBlock& block : world_.left) {
            if (block.kind != kind || block.is_outdated || block.end <= mark) continue;
            leave_map(block);
            block.is_outdated = true;
        }
        arena.release_to(mark);
    }
}

void HandleProgram::leave_all() {
    const std::lock_guard guard(world_.mutex);
    for (LivingBlock& block : blocks_) world_.left.push_back(std::move(block));
    blocks_.clear();
}

void HandleProgram::end_all() {
    leave_all();
    while (!world_.left.empty()) {
        take_over();
        end(take());
    }
}

void HandleProgram::leave_map(const LivingBlock& block) {
    if (!block.is_outdated) world_.bytes.remove(block.handle->get());
}

void HandleProgram::check_end(const LivingBlock& block, std::size_t before) {
    if (block.kind == SourceKind::scratch) {
        for (LivingBlock& one : scratch_) {
            if (one.used_before == block.used_before) one.has_ended = true;
        }
        check_scratch();
    }
    if (!is_arena(block.kind) || programs_ == Programs::several) return;
    const bool is_top = !block.is_outdated && before == block.end;
    expect_used(block.kind, is_top ? block.begin : before);
}

void HandleProgram::check_scratch() {
    while (!scratch_.empty() && scratch_.back().has_ended &&
           scratch_.back().scope == scopes_.size()) {
        scratch_used_ = scratch_.back().used_before;
        scratch_.pop_back();
    }
    expect_used(SourceKind::scratch, scratch_used_);
}

void HandleProgram::expect_used(SourceKind kind, std::size_t expected) const {
    if (used(kind) == expected) return;
    throw std::runtime_error(std::string(to_string(kind)) + " has " + std::to_string(used(kind)) +
                             " B in use, expected " + std::to_string(expected));
}

std::size_t HandleProgram::used(SourceKind kind) const {
    if (kind == SourceKind::scratch) return Scratch::local().used();
    Arena* const arena = world_.sources.arena_of(kind);
    return arena != nullptr ? arena->used() : 0;
}

}  // namespace tensorpool::testing
