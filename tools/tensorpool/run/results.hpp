#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <vector>

#include <tensorpool/process_snapshot.hpp>

#include "run/parts.hpp"
#include "stat/totals.hpp"

namespace tensorpool::command::run {

/// What a process came to that used a pool.
struct ProcessResult {
    ProcessSnapshot snapshot;
    Totals totals;
    bool has_ended = true;
};

/// What programs said of a part. A process that runs another is another program.
struct PartNotes {
    std::uint64_t programs = 0;         ///< that have it
    std::vector<std::string> problems;  ///< of those that could not, each once; a few
};

/// All that the report tells of the processes. Bounded, however many there were.
class Results {
public:
    void add(ProcessSnapshot snapshot, bool has_ended);
    /// "malloc": the process has that part. "numpy\n<why>": it could not.
    void add_note(const std::string& note);
    /// Something that could not be read, and why.
    void add_problem(const std::string& what);

    /// The largest by their peaks, in that order.
    const std::vector<ProcessResult>& largest() const noexcept { return largest_; }
    /// How many there were, and all that is not among the largest added up.
    std::uint64_t processes() const noexcept { return largest_.size() + others_; }
    std::uint64_t others() const noexcept { return others_; }
    const Totals& totals_of_others() const noexcept { return totals_of_others_; }

    const PartNotes& notes(Part part) const noexcept {
        return notes_[static_cast<std::size_t>(part)];
    }
    const std::vector<std::string>& problems() const noexcept { return problems_; }

private:
    std::vector<ProcessResult> largest_;
    std::uint64_t others_ = 0;
    Totals totals_of_others_;
    std::array<PartNotes, std::size(all_parts)> notes_;
    std::vector<std::string> problems_;
};

}  // namespace tensorpool::command::run
