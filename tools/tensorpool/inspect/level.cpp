#include "inspect/level.hpp"

#include <algorithm>

namespace tensorpool::command::inspect {

LevelMeter::LevelMeter(const History& history)
    : history_(history),
      used_(history.recording().processes.size()),
      held_(history.recording().sources.size()) {
    for (const trace::RecordedProcess& process : history.recording().processes) {
        pages_.emplace_back(std::max<std::uint64_t>(process.page_bytes, 1));
    }
}

Range LevelMeter::place_of(std::size_t life) const {
    return range_of(history_.lives()[life].address, history_.facts(life).block_bytes);
}

void LevelMeter::change_pages(std::size_t life, bool added) {
    PagesInUse& pages = pages_[history_.lives()[life].process];
    const std::uint64_t before = pages.bytes();
    added ? pages.add(place_of(life)) : pages.remove(place_of(life));
    level_.page_bytes += pages.bytes() - before;
}

void LevelMeter::begin(std::size_t life) {
    ++level_.blocks;
    level_.alive_bytes += history_.lives()[life].bytes;
    level_.block_bytes += history_.facts(life).block_bytes;
    change_pages(life, true);
    RangesUsed& used = used_[history_.lives()[life].process];
    const std::uint64_t before = used.bytes();
    used.add(place_of(life));
    level_.used_bytes += used.bytes() - before;
}

void LevelMeter::end(std::size_t life) {
    --level_.blocks;
    level_.alive_bytes -= history_.lives()[life].bytes;
    level_.block_bytes -= history_.facts(life).block_bytes;
    change_pages(life, false);
}

void LevelMeter::hold(const trace::CapacityChange& change) {
    level_.held_bytes += change.bytes - held_[change.source];
    held_[change.source] = change.bytes;
}

}  // namespace tensorpool::command::inspect
