#include <tensorpool/planned_arena.hpp>

#include <bit>
#include <cerrno>
#include <fstream>
#include <stdexcept>
#include <system_error>
#include <utility>

#include "plan/planned_state.hpp"

namespace tensorpool {
namespace {

[[noreturn]] void refuse_file(const std::string& path) {
    throw std::system_error(errno, std::generic_category(), "tensorpool: plan file '" + path + "'");
}

}  // namespace

PlannedArena::PlannedArena(PlannedArenaOptions options) {
    state_ = std::make_unique<detail::PlannedState>(*this, std::move(options));
}

PlannedArena::~PlannedArena() = default;

void PlannedArena::begin_iteration() {
    state_->begin_iteration();
}

void PlannedArena::end_iteration() {
    state_->end_iteration();
}

void PlannedArena::relearn() {
    state_->relearn();
}

// Opening truncates the file, so the plan is checked first.
void PlannedArena::save(const std::string& path) const {
    state_->require_plan();
    std::ofstream out(path, std::ios::binary);
    if (!out) refuse_file(path);
    save(out);
}

void PlannedArena::save(std::ostream& out) const {
    state_->save(out);
}

void PlannedArena::load(const std::string& path) {
    std::ifstream in(path, std::ios::binary);
    if (!in) refuse_file(path);
    state_->load(in, path);
}

void PlannedArena::load(std::istream& in) {
    state_->load(in, "a stream");
}

std::uint64_t PlannedArena::sequence_checksum() const {
    return state_->sequence_checksum();
}

void* PlannedArena::allocate_slow(std::size_t bytes, std::size_t alignment) {
    if (!std::has_single_bit(alignment)) {
        throw std::invalid_argument("tensorpool: planned arena '" + name() +
                                    "': allocate: alignment is " + std::to_string(alignment) +
                                    " B; expected a power of two");
    }
    return bytes != 0 ? state_->allocate(bytes, alignment) : nullptr;
}

void* PlannedArena::try_allocate_slow(std::size_t bytes, std::size_t alignment) noexcept {
    if (bytes == 0 || !std::has_single_bit(alignment)) return nullptr;
    return state_->try_allocate(bytes, alignment);
}

void PlannedArena::deallocate_slow(void* p) noexcept {
    if (p != nullptr) state_->deallocate(p);
}

PlannedArenaStatistics PlannedArena::statistics() const noexcept {
    return state_->statistics();
}

const std::string& PlannedArena::name() const noexcept {
    return state_->options().name;
}

}  // namespace tensorpool
