// The end of scratch memory: scopes, marks, resets.

#include <algorithm>
#include <stdexcept>
#include <string>
#include <utility>

#include <tensorpool/scratch.hpp>

#include "arena/scratch/scratch_state.hpp"
#include "events/misuse.hpp"
#include "events/recorder_hooks.hpp"

namespace tensorpool {
namespace {

[[noreturn]] void refuse(const detail::ScratchState& state, const char* call, const char* what) {
    throw std::logic_error(std::string("tensorpool: scratch of ") + state.name() + ": " + call +
                           ": " + what);
}

}  // namespace

void Scratch::begin_operator(ScratchScope& scope, std::string_view name) noexcept {
    detail::ScratchOperator* const found = state_->operators.find(name);
    if (found == nullptr) return;
    scope.operator_ = found;
    scope.outer_operator_ = std::exchange(state_->innermost, found);
    scope.slack_before_ = state_->slack();
    scope.high_before_ = words_->high.load(std::memory_order_relaxed);
    base::raise_to(state_->totals.peak_used_bytes, scope.high_before_);
    words_->high.store(scope.used_before_, std::memory_order_relaxed);
    base::Refusal refusal;
    // If this is refused, the operator's allocations request what they need themselves.
    (void)state_->prepare(found->need_bytes.load(std::memory_order_relaxed), refusal);
}

void Scratch::end_operator(const ScratchScope& scope) noexcept {
    const std::size_t high = words_->high.load(std::memory_order_relaxed);
    scope.operator_->calls.fetch_add(1, std::memory_order_relaxed);
    const std::size_t peak = high - scope.used_before_;
    base::raise_to(scope.operator_->peak_bytes, peak);
    base::raise_to(scope.operator_->need_bytes, peak + state_->slack() - scope.slack_before_);
    state_->innermost = scope.outer_operator_;
    words_->high.store(std::max(high, scope.high_before_), std::memory_order_relaxed);
}

void Scratch::end_scope_slow(const ScratchScope& scope) noexcept {
    if (this->scope() != scope.self_) {
        const std::string name = arena::scratch_operators().name_of(scope.operator_);
        events::stop_at_misuse(
            {.kind = events::MisuseKind::scope_order, .owner = state_->name()},
            "ScratchScope: scope '%s' of %s ended before one that began inside it", name.c_str(),
            state_->name());
    }
    raise_high();
    events::record_offset(TraceAction::scratch_release, state_->number, scope.used_before_);
    if (scope.operator_ != nullptr) end_operator(scope);
    state_->go_back_to(scope.chunk_, scope.used_before_);
    detail::add(words_->releases, 1);
    scope_.store(scope.outer_, std::memory_order_relaxed);
    if (unsettled_ && this->scope() == state_->outside && used() == 0) state_->settle();
}

Scratch::Mark Scratch::mark() const noexcept {
    Mark mark;
    mark.scratch_ = state_->number;
    mark.scope_ = scope();
    mark.releases_ = state_->history.count();
    mark.chunk_ = chunk_;
    mark.offset_ = used();
    return mark;
}

bool Scratch::is_in_scope() const noexcept {
    return scope() != state_->outside;
}

void Scratch::release_to(const Mark& mark) {
    release_to(mark, "release_to");
}

void Scratch::release_to(const Mark& mark, const char* call) {
    if (mark.scratch_ == 0) refuse(*state_, call, "the mark is empty");
    if (mark.scratch_ != state_->number)
        refuse(*state_, call, "the mark belongs to another scratch");
    if (mark.scope_ != scope()) refuse(*state_, call, "the mark was made in another scope");
    if (state_->history.went_below(mark.offset_, mark.releases_)) {
        refuse(*state_, call, "the mark is stale: a release went below it since");
    }
    raise_high();
    events::record_offset(TraceAction::scratch_release, state_->number, mark.offset_);
    state_->go_back_to(mark.chunk_, mark.offset_);
    detail::add(words_->releases, 1);
    state_->history.add(mark.offset_);
}

void Scratch::reset() {
    if (is_in_scope()) refuse(*state_, "reset", "inside an open ScratchScope");
    raise_high();
    events::record_offset(TraceAction::scratch_release, state_->number, 0);
    state_->go_back_to(0, 0);
    detail::add(words_->releases, 1);
    state_->history.add(0);
    if (unsettled_) state_->settle();
}

}  // namespace tensorpool
