#include "common/launch/results.hpp"

#include <algorithm>
#include <utility>

#include "common/printable.hpp"

namespace tensorpool::command::launch {
namespace {

constexpr std::size_t max_results = 20;
constexpr std::size_t max_problems = 5;

bool is_larger(const ProcessResult& one, const ProcessResult& other) {
    return one.totals.peak_bytes > other.totals.peak_bytes;
}

void add_once(std::vector<std::string>& texts, const std::string& text) {
    if (texts.size() == max_problems || std::ranges::find(texts, text) != texts.end()) return;
    texts.push_back(text);
}

}  // namespace

void Results::add(ProcessSnapshot snapshot, bool has_ended) {
    ProcessResult result{std::move(snapshot), {}, has_ended};
    result.totals = add_up(result.snapshot);
    const auto position = std::ranges::upper_bound(largest_, result, is_larger);
    largest_.insert(position, std::move(result));
    if (largest_.size() <= max_results) return;
    const Totals& left = largest_.back().totals;
    ++others_;
    totals_of_others_.peak_bytes += left.peak_bytes;
    totals_of_others_.allocations += left.allocations;
    totals_of_others_.failures += left.failures;
    largest_.pop_back();
}

void Results::add_note(const std::string& note) {
    const std::size_t end = note.find('\n');
    const std::string name = note.substr(0, end);
    for (const Part part : all_parts) {
        if (name_of(part) != name) continue;
        PartNotes& notes = notes_[static_cast<std::size_t>(part)];
        if (end == std::string::npos) {
            ++notes.programs;
        } else {
            add_once(notes.problems, printable(note.substr(end + 1)));
        }
    }
}

void Results::add_problem(const std::string& what) {
    add_once(problems_, printable(what));
}

}  // namespace tensorpool::command::launch
