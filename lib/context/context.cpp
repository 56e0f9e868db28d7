#include <tensorpool/context.hpp>

#include <algorithm>
#include <utility>

#include <tensorpool/memory_pool.hpp>

namespace tensorpool {
namespace {

ContextOptions with_arena(ArenaOptions arena) {
    ContextOptions options;
    options.arena = std::move(arena);
    return options;
}

ArenaOptions arena_options(std::size_t arena_size, std::size_t align) {
    ArenaOptions options = ContextOptions().arena;
    options.initial_capacity = arena_size;
    options.alignment = align;
    return options;
}

void* allocate_in(MemoryPool& pool, std::size_t bytes, std::size_t alignment) {
    return alignment <= detail::smallest_block_bytes ? pool.allocate(bytes)
                                                     : pool.allocate(bytes, alignment);
}

constinit thread_local const ScratchAllocationScope* innermost_scope = nullptr;

}  // namespace

Context::Context() : Context(ContextOptions()) {}

Context::Context(std::size_t arena_size, std::size_t align)
    : Context(arena_options(arena_size, align)) {}

Context::Context(ArenaOptions options) : Context(with_arena(std::move(options))) {}

Context::Context(ContextOptions options)
    : arena_(std::move(options.arena)),
      alignment_(arena_.alignment()),
      pool_(options.pool != nullptr ? options.pool : &get_global_memory_pool()),
      small_bytes_(options.small_bytes) {}

Context::Context(std::span<std::byte> arena_buffer, std::size_t align)
    : arena_(Arena::over(arena_buffer, arena_options(0, align))),
      alignment_(align),
      pool_(&get_global_memory_pool()) {}

Context::Context(Measuring measuring)
    : arena_(Arena::measuring(std::move(measuring.options))),
      alignment_(arena_.alignment()),
      pool_(&get_global_memory_pool()) {}

Context Context::measuring(std::size_t align) {
    return measuring(arena_options(0, align));
}

Context Context::measuring(ArenaOptions options) {
    return Context(Measuring{std::move(options)});
}

Context::~Context() = default;

void* Context::allocate(std::size_t bytes) {
    if (bytes == 0) return nullptr;
    if (ScratchAllocationScope::is_open_for(*this)) [[unlikely]]
        return scratch_alloc(bytes);
    return is_small(bytes) ? allocate_in(*pool_, bytes, alignment_) : alloc(bytes);
}

void Context::deallocate(void* p, std::size_t bytes) noexcept {
    if (p == nullptr || !is_small(bytes)) return;
    // The pool cannot tell: the buffer of a scratch may lie in one of its blocks.
    if (ScratchAllocationScope::is_open_for(*this) && scratch().contains(p)) return;
    if (alignment_ <= detail::smallest_block_bytes) {
        pool_->deallocate(p, bytes);
    } else {
        pool_->deallocate(p, bytes, alignment_);
    }
}

HeldBlock Context::hold(std::size_t bytes, std::size_t alignment) {
    if (!std::has_single_bit(alignment)) {
        throw std::invalid_argument("tensorpool: context '" + arena_.name() + "': alignment is " +
                                    std::to_string(alignment) + "; expected a power of two");
    }
    if (bytes == 0) return {};
    alignment = std::max(alignment, alignment_);
    if (ScratchAllocationScope::is_open_for(*this)) return scratch().hold(bytes, alignment);
    if (!is_small(bytes)) return arena_.hold(bytes, alignment);
    return {allocate_in(*pool_, bytes, alignment), bytes, BlockOwner::of_pool(pool_, alignment)};
}

void* Context::scratch_alloc_matrix_pack(std::size_t rows, std::size_t cols,
                                         std::size_t elem_size) {
    return scratch().allocate_matrix_pack(rows, cols, elem_size, alignment_);
}

void Context::save_scratch() {
    saved_ = scratch().mark();
}

void Context::restore_scratch() {
    scratch().release_to(saved_, "restore_scratch");
}

void Context::use_scratch(std::span<std::byte> buffer) {
    const auto refuse = [this](const std::string& what) {
        throw std::logic_error("tensorpool: context '" + arena_.name() + "': use_scratch: " + what);
    };
    if (ScratchAllocationScope::is_open_for(*this)) {
        refuse("inside an open ScratchAllocationScope of this context");
    }
    if (buffer_ != nullptr && buffer_->is_in_scope()) {
        refuse("inside an open ScratchScope of the present buffer");
    }
    if (buffer_ != nullptr && buffer_->used() != 0) {
        refuse(std::to_string(buffer_->used()) +
               " B of the present buffer are in use; call scratch_reset first");
    }
    saved_ = {};
    buffer_ =
        buffer.empty() ? nullptr : std::unique_ptr<Scratch>(new Scratch(Scratch::over(buffer)));
}

ContextStatistics Context::statistics() const {
    ContextStatistics statistics;
    statistics.pool = pool_->statistics();
    statistics.arena = arena_.statistics();
    const Scratch* const scratch = buffer_ != nullptr ? buffer_.get() : detail::local_scratch;
    if (scratch != nullptr) statistics.scratch = scratch->statistics();
    return statistics;
}

ScratchAllocationScope::ScratchAllocationScope(Context& context, std::string_view name)
    : context_(context), outer_(innermost_scope), scope_(context.scratch(), name) {
    innermost_scope = this;
}

ScratchAllocationScope::~ScratchAllocationScope() {
    innermost_scope = outer_;
}

bool ScratchAllocationScope::is_open_for(const Context& context) noexcept {
    const ScratchAllocationScope* scope = innermost_scope;
    while (scope != nullptr && &scope->context_ != &context) scope = scope->outer_;
    return scope != nullptr;
}

}  // namespace tensorpool
