#include "models/fed_handles.hpp"

#include <array>
#include <iterator>
#include <memory>
#include <stdexcept>
#include <utility>

#include "models/handle_program.hpp"

namespace tensorpool::testing {
namespace {

constexpr Checks levels[] = {Checks::off, Checks::basic, Checks::full, Checks::sampled,
                             Checks::hardened};
constexpr std::size_t level_count = std::size(levels);
constexpr int steps = 30;  // in one iteration of the planned arena

// Making a world takes longer than most programs.
std::array<std::unique_ptr<HandleWorld>, level_count> worlds;

void run_in(HandleWorld& world, Checks checks, std::span<const std::uint8_t> choices,
            bool uses_plan) {
    HandleProgram program(world, choices, Programs::one, uses_plan);
    while (!program.at_end()) {
        program.run(steps);
        // With checks, a release must not outdate a handle.
        if (checks == Checks::off) program.release_arenas();
    }
    program.end_all();
    world.sources.check_nothing_in_use();
    for (const SourceKind kind : {SourceKind::arena, SourceKind::context}) {
        world.sources.arena_of(kind)->release_to(std::size_t{0});
    }
}

}  // namespace

void feed_handles(std::span<const std::uint8_t> bytes) {
    if (bytes.empty()) return;
    const std::size_t level = bytes[0] % level_count;
    const bool uses_plan = bytes[0] / level_count % 2 != 0;
    // A world is used again unless the program finds a fault in it.
    std::unique_ptr<HandleWorld> world = std::move(worlds[level]);
    if (world == nullptr) {
        world = std::make_unique<HandleWorld>(SourceKind::pool, GiveBackFault::none, levels[level]);
    }
    try {
        run_in(*world, levels[level], bytes.subspan(1), uses_plan);
    } catch (const std::runtime_error&) {
        (void)world.release();  // has blocks in use
        throw;
    }
    worlds[level] = std::move(world);
}

}  // namespace tensorpool::testing
