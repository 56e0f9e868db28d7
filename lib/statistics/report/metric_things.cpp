#include "statistics/report/metric_things.hpp"

#include <algorithm>
#include <set>

#include "statistics/report/report_parts.hpp"

namespace tensorpool::statistics {
namespace {

/// Gives each object of a process a unique name. If a name is already taken, the number of the
/// object is appended.
class Names {
public:
    std::string claim(const char* name, std::uint64_t id) {
        std::string text = valid_utf8(name);
        if (!taken_.insert(text).second) {
            text += " #" + std::to_string(id);
            const std::string numbered = text;
            while (!taken_.insert(text).second) {
                text = numbered + '\'';
                text += std::to_string(++repeated_);
            }
        }
        return text;
    }

private:
    std::set<std::string> taken_;
    // For numbers that occur twice, as in a segment that was overwritten. One counter for all
    // names, so that thousands of equal names take no longer than others.
    std::uint64_t repeated_ = 0;
};

Labels labels_of(const ProcessSnapshot& snapshot) {
    return {{"pid", std::to_string(snapshot.process)},
            {"process", valid_utf8(snapshot.process_name.c_str())}};
}

/// Adds the objects of one process, each with the label `label`, which is its name.
template <class Statistics>
void add(std::vector<MetricThing<Statistics>>& things, const Labels& process, const char* label,
         Names& names, const std::vector<Statistics>& of_process) {
    for (const Statistics& one : of_process) {
        Labels labels = process;
        std::uint64_t number = static_cast<std::uint64_t>(&one - of_process.data()) + 1;
        if constexpr (requires { one.id; }) number = one.id;
        if constexpr (requires { one.device; }) {
            labels.emplace_back("device", valid_utf8(one.device));
        }
        labels.emplace_back(label, names.claim(one.name, number));
        things.push_back({std::move(labels), &one});
    }
}

// A path of more names begins with "...". No program nests budgets so deeply.
constexpr std::size_t most_names = 16;

/// Adds the budgets of one process, each with the path of names that leads to it.
void add_budgets(std::vector<MetricThing<BudgetStatistics>>& things, const Labels& process,
                 const std::vector<BudgetStatistics>& budgets) {
    Names names;
    std::vector<const char*> path;
    for (const auto& [budget, depth] : budget_tree(budgets)) {
        path.resize(depth);
        path.push_back(budget->name);
        const std::size_t first = path.size() - std::min(path.size(), most_names);
        std::string text = first == 0 ? "" : ".../";
        for (std::size_t at = first; at != path.size(); ++at) {
            if (at != first) text += '/';
            text += path[at];
        }
        Labels labels = process;
        labels.emplace_back("budget", names.claim(text.c_str(), budget->id));
        things.push_back({std::move(labels), budget});
    }
}

}  // namespace

MetricThings::MetricThings(const std::vector<ProcessSnapshot>& snapshots) {
    for (const ProcessSnapshot& snapshot : snapshots) {
        const Labels process = labels_of(snapshot);
        processes.push_back({process, &snapshot});
        Names of_pools, of_arenas, of_devices, of_planned, of_stashes, of_scopes;
        add(pools, process, "pool", of_pools, snapshot.pools);
        add(arenas, process, "arena", of_arenas, snapshot.arenas);
        add(arenas, process, "arena", of_arenas, snapshot.scratches);
        add(devices, process, "allocator", of_devices, snapshot.devices);
        add(planned, process, "planned", of_planned, snapshot.planned);
        add_budgets(budgets, process, snapshot.budgets);
        add(stashes, process, "stash", of_stashes, snapshot.stashes);
        add(scopes, process, "scope", of_scopes, snapshot.scopes);
    }
}

}  // namespace tensorpool::statistics
