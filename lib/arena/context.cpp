#include <tensorpool/context.hpp>

#include <stdexcept>
#include <string>
#include <utility>

namespace tensorpool {
namespace {

ArenaOptions context_options() {
    ArenaOptions options;
    options.name = "context";
    return options;
}

ArenaOptions context_options(std::size_t arena_size, std::size_t align) {
    ArenaOptions options = context_options();
    options.initial_capacity = arena_size;
    options.alignment = align;
    return options;
}

}  // namespace

Context::Context() : Context(context_options()) {}

Context::Context(std::size_t arena_size, std::size_t align)
    : Context(context_options(arena_size, align)) {}

Context::Context(ArenaOptions options)
    : arena_(std::move(options)), alignment_(arena_.alignment()) {}

Context::Context(std::span<std::byte> arena_buffer, std::size_t align)
    : arena_(Arena::over(arena_buffer, context_options(0, align))), alignment_(align) {}

Context::Context(Measuring measuring)
    : arena_(Arena::measuring(std::move(measuring.options))), alignment_(arena_.alignment()) {}

Context Context::measuring(std::size_t align) {
    return measuring(context_options(0, align));
}

Context Context::measuring(ArenaOptions options) {
    return Context(Measuring{std::move(options)});
}

Context::~Context() = default;

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

}  // namespace tensorpool
