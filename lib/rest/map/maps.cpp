#include "rest/map/maps.hpp"

#include <mutex>
#include <new>

#include "base/never_destroyed.hpp"
#include "platform/process/fork_handlers.hpp"
#include "rest/map/map_state.hpp"

namespace tensorpool::stashing {
namespace {

struct Maps {
    std::mutex mutex;
    MapState* first = nullptr;
};

constinit base::NeverDestroyed<Maps> maps;

template <class Function>
void for_each_map(Function function) noexcept {
    for (MapState* map = maps->first; map != nullptr; map = map->next_map) function(*map);
}

bool watches_forks() noexcept {
    return platform::set_fork_handlers(
        platform::ForkStage::stashed_maps,
        [] {
            maps->mutex.lock();
            for_each_map([](MapState& map) { map.lock(); });
        },
        [] {
            for_each_map([](MapState& map) { map.unlock(); });
            maps->mutex.unlock();
        },
        [] {
            for_each_map([](MapState& map) {
                map.forget_movers();
                map.unlock();
            });
            maps->mutex.unlock();
        });
}

}  // namespace

void enter_map(MapState& map) {
    if (!watches_forks()) throw std::bad_alloc();
    const std::lock_guard guard(maps->mutex);
    map.next_map = maps->first;
    maps->first = &map;
}

void leave_map(MapState& map) noexcept {
    const std::lock_guard guard(maps->mutex);
    MapState** link = &maps->first;
    while (*link != &map) link = &(*link)->next_map;
    *link = map.next_map;
}

}  // namespace tensorpool::stashing
