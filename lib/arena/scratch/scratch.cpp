#include <tensorpool/scratch.hpp>

#include <tensorpool/arena_options.hpp>

#include "arena/scratch/scratch_state.hpp"
#include "base/report_text.hpp"

namespace tensorpool {

using arena::Attempt;
using detail::ScratchState;

namespace {

constexpr std::size_t cache_line_bytes = 64;
// A first-level cache has 64 sets of 64 bytes on all x86-64 processors and most others. Rows whose
// distance is a multiple of 4096 bytes all begin in one set, and rows whose distance is a multiple
// of this constant in at most eight.
constexpr std::size_t few_sets_bytes = 512;

[[noreturn]] void refuse(ScratchState& state, std::size_t bytes, const Attempt& attempt) {
    state.count_refusal(bytes, attempt.refusal);
    AllocationFailure failure =
        base::failure_of(attempt.refusal, bytes, state.scratch().used(), state.capacity());
    const limits::BudgetLines lines(attempt.budget);
    failure.details = lines.c_str();
    throw AllocationError(state.name(), failure);
}

}  // namespace

Scratch& Scratch::make_local() {
    std::unique_ptr<Scratch> made(new Scratch());
    // A holder of a budget that was asked may have used the thread's scratch, which is then there.
    if (detail::local_scratch != nullptr) return *detail::local_scratch;
    detail::local_scratch = made.release();
    arena::scratch_registry().enter(*detail::local_scratch->state_);
    return *detail::local_scratch;
}

Scratch::Scratch()
    : state_(std::make_unique<ScratchState>(
          *this, "thread " + std::to_string(platform::current_thread_id()),
          arena::CheckedBlocks::Memory::of_system)) {
    Attempt attempt;
    while (!state_->prepare(ScratchState::first_chunk_bytes, attempt)) {
        if (!attempt.may_retry()) refuse(*state_, ScratchState::first_chunk_bytes, attempt);
    }
    set_slow_end(unsettled, false);
    platform::mark_defined(this, sizeof *this);
}

Scratch Scratch::over(std::span<std::byte> buffer) {
    return Scratch(buffer);
}

Scratch::Scratch(std::span<std::byte> buffer)
    : state_(std::make_unique<ScratchState>(*this, "a caller's buffer",
                                            arena::CheckedBlocks::Memory::of_caller)) {
    state_->show_quick_path(!events::is_recording() && !platform::has_memory_tool());
    const auto address = reinterpret_cast<std::uintptr_t>(buffer.data());
    const std::size_t skipped = base::align_up(address, cache_line_bytes) - address;
    state_->set_buffer(buffer.subspan(std::min(skipped, buffer.size())));
    platform::mark_defined(this, sizeof *this);
}

Scratch::~Scratch() = default;

void* Scratch::allocate_slow(std::size_t bytes, std::size_t alignment) {
    if (!std::has_single_bit(alignment)) {
        throw std::invalid_argument(std::string("tensorpool: scratch of ") + state_->name() +
                                    ": allocate: alignment is " + std::to_string(alignment) +
                                    " B; expected a power of two");
    }
    if (bytes == 0) return nullptr;
    events::look_for_recorder();
    Attempt attempt;
    std::size_t begin = 0;
    void* block = nullptr;
    do {
        begin = used();
        state_->note_attempt();
        block = state_->allocate(bytes, alignment, attempt);
    } while (block == nullptr && attempt.may_retry());
    if (events::is_recording() || platform::has_memory_tool() || state_->checked != nullptr) {
        set_slow_end(unsettled, true);  // the scope's end is recorded as its allocations were
    }
    if (events::is_recording()) {
        const auto action = block == nullptr ? TraceAction::refuse : TraceAction::scratch_allocate;
        events::record_offset(TraceAction::scratch_mark, state_->number, begin);
        events::record(action, state_->number, block, bytes, alignment);
    }
    if (block == nullptr) refuse(*state_, bytes, attempt);
    return block;
}

void* Scratch::allocate_matrix_pack(std::size_t rows, std::size_t cols, std::size_t element_bytes,
                                    std::size_t alignment) {
    return allocate(product(product(rows, cols), element_bytes), alignment);
}

PaddedMatrix Scratch::allocate_padded_matrix(std::size_t rows, std::size_t cols,
                                             std::size_t element_bytes) {
    const std::size_t bytes = product(cols, element_bytes);
    if (rows == 0 || bytes == 0) return {};
    if (bytes > std::numeric_limits<std::size_t>::max() - 2 * cache_line_bytes) {
        refuse(*state_, bytes, {.refusal = {"the largest size", SIZE_MAX}});
    }
    std::size_t row_bytes = base::align_up(bytes, cache_line_bytes);
    if (row_bytes % few_sets_bytes == 0) row_bytes += cache_line_bytes;
    return {allocate(product(rows, row_bytes)), row_bytes};
}

std::size_t Scratch::product(std::size_t one, std::size_t other) const {
    std::size_t result = 0;
    if (!base::multiply(one, other, result)) {
        refuse(*state_, SIZE_MAX, {.refusal = {"the largest size", SIZE_MAX}});
    }
    return result;
}

void Scratch::reserve(std::size_t bytes) {
    Attempt attempt;
    while (bytes != 0 && !state_->prepare(bytes, attempt)) {
        if (!attempt.may_retry()) refuse(*state_, bytes, attempt);
    }
}

std::size_t Scratch::trim() noexcept {
    return state_->trim();
}

bool Scratch::contains(const void* p) const noexcept {
    return state_->chunks.contain(p);
}

std::size_t Scratch::peak() const noexcept {
    return std::max(state_->peak(), used());
}

std::size_t Scratch::capacity() const noexcept {
    return state_->capacity();
}

ArenaStatistics Scratch::statistics() const noexcept {
    return statistics::statistics_of(*state_->record);
}

using base::add_line;
using base::BytesText;

std::string to_json(const ScratchReport& report) {
    const auto json_of = [](const OperatorScratch& one) {
        return "{\"name\":" + base::quoted(one.name.c_str()) +
               ",\"calls\":" + std::to_string(one.calls) +
               ",\"peak_bytes\":" + std::to_string(one.peak_bytes) +
               ",\"growths\":" + std::to_string(one.growths) +
               ",\"grown_bytes\":" + std::to_string(one.grown_bytes) + '}';
    };
    return "{\"operators\":" + base::json_list(report.operators, json_of) + '}';
}

std::string to_text(const ScratchReport& report) {
    std::string out;
    add_line(out, "%-24s %10s %12s %8s %12s", "operator", "calls", "peak", "growths", "grown by");
    for (const OperatorScratch& one : report.operators) {
        add_line(out, "%-24.60s %10llu %12s %8llu %12s", one.name.c_str(),
                 static_cast<unsigned long long>(one.calls), BytesText(one.peak_bytes).c_str(),
                 static_cast<unsigned long long>(one.growths), BytesText(one.grown_bytes).c_str());
    }
    return out;
}

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
    Attempt attempt;
    // If this is refused, the operator's allocations request what they need themselves.
    (void)state_->prepare(found->need_bytes.load(std::memory_order_relaxed), attempt);
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
    state_->end_scope(scope.chunk_, scope.used_before_, scope.outer_);
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
    state_->release_to(mark.chunk_, mark.offset_);
}

void Scratch::reset() {
    if (is_in_scope()) refuse(*state_, "reset", "inside an open ScratchScope");
    state_->release_to(0, 0);
    state_->settle_if_unused();
}

}  // namespace tensorpool
