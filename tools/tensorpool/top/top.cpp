#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "common/options.hpp"
#include "common/output.hpp"
#include "common/target.hpp"
#include "common/totals.hpp"
#include "top/top_tables.hpp"
#include "top/top_terminal.hpp"
#include "top/top_watch.hpp"

namespace tensorpool::command {
namespace {

using Clock = std::chrono::steady_clock;

std::vector<std::uint64_t> pools_of(const TopData& data) {
    std::vector<std::uint64_t> pools;
    if (!data.chosen || !data.chosen->now) return pools;
    for (const PoolStatistics& pool : data.chosen->now->pools) pools.push_back(pool.id);
    return pools;
}

class LiveScreen {
public:
    LiveScreen(const Settings& settings, double interval)
        : watch_(settings),
          interval_(
              std::chrono::duration_cast<Clock::duration>(std::chrono::duration<double>(interval))),
          next_(Clock::now() + interval_) {
        state_.plain_bytes = settings.bytes;
        follow_choice();
    }

    /// Runs until the user or a signal ends it, or `samples` samples were taken (0: unlimited).
    void run(Terminal& terminal, std::uint64_t samples) {
        for (std::uint64_t sample = 1; !quit_ && !terminal.is_ending();) {
            terminal.show(draw(watch_.data(), state_, terminal.size()));
            const std::optional<KeyPress> key = terminal.wait_for_key(next_);
            if (key) obey(*key);
            if (Clock::now() < next_) continue;
            if (samples != 0 && ++sample > samples) return;
            watch_.update(state_.view);
            follow_choice();
            next_ = Clock::now() + interval_;
        }
    }
    const TopData& data() const { return watch_.data(); }

private:
    /// Shows the process requested by --pid or --name as soon as it exists.
    void follow_choice() {
        const auto& chosen = watch_.data().chosen;
        if (!chosen || chosen->process.process == state_.process) return;
        if (state_.process == 0) state_.view = View::pools;
        state_.process = chosen->process.process;
        state_.pool = 0;
    }
    void obey(KeyPress key) {
        switch (press(state_, key, table_of(watch_.data(), state_), pools_of(watch_.data()))) {
            case Action::nothing:
                break;
            case Action::quit:
                quit_ = true;
                break;
            case Action::reset_highest:
                watch_.reset_highest();
                break;
            case Action::choose_process:
                watch_.choose(state_.process);
                break;
            case Action::update:
                next_ = Clock::now();  // shows at once what was not read before
                break;
        }
    }

    TopWatch watch_;
    TopState state_;
    Clock::duration interval_;
    Clock::time_point next_;
    bool quit_ = false;
};

int watch_live(const Settings& settings, const Repetition& repetition) try {
    LiveScreen screen(settings, repetition.interval);
    {
        Terminal terminal;
        screen.run(terminal, repetition.times);
    }
    const auto& chosen = screen.data().chosen;
    return settings.process != 0 && chosen && chosen->ended ? target_gone : success;
} catch (const AttachError& error) {
    throw to_command_error(error);
}

std::string rates_json(const ProcessRates& rates) {
    const TotalRates totals = add_up(rates);
    return nlohmann::ordered_json{{"seconds", rates.seconds},
                                  {"minor_faults", totals.faults},
                                  {"allocations", totals.allocations},
                                  {"deallocations", totals.deallocations},
                                  {"allocated_bytes", totals.allocated_bytes},
                                  {"failures", totals.failures},
                                  {"hit_ratio", totals.hit_ratio}}
        .dump();
}

/// Prints one JSON object per sample, with all available data.
int print_samples(const Settings& settings, const Repetition& repetition) try {
    StatisticsReader reader = attach_chosen(settings);
    ProcessSnapshot older = reader.snapshot();
    Clock::time_point next = Clock::now();
    const std::uint64_t samples = repetition.times;
    for (std::uint64_t sample = 1;; ++sample) {
        const ProcessSnapshot newer = sample == 1 ? older : reader.snapshot();
        print_line(fmt::format("{{\"snapshot\":{},\"rates\":{}}}", to_json(newer),
                               rates_json(difference(older, newer))));
        if (sample == samples) return success;
        older = newer;
        next += std::chrono::duration_cast<Clock::duration>(
            std::chrono::duration<double>(repetition.interval));
        pause_until(next, reader);
    }
} catch (const AttachError& error) {
    throw to_command_error(error);
}

}  // namespace

CLI::App* add_top(CLI::App& app, Settings& settings) {
    CLI::App* const command =
        app.add_subcommand("top", "Show processes, pools, sites, scopes and threads, live");
    const auto repetition = std::make_shared<Repetition>();
    add_target_options(*command, settings);
    add_repetition_options(*command, *repetition);
    add_output_options(*command, settings);
    command->footer(
        "Examples:\n"
        "  tensorpool top                  all processes; Enter opens one\n"
        "  tensorpool top --name train     this process, then the next of this name\n"
        "  tensorpool top --name train --json -n 1 | jq .snapshot.pools\n"
        "\n"
        "Keys: h help, q quit, Tab next view, < > sort, r reset HIGHEST.");
    settings.details["top"] =
        "HIGHEST is the maximum in use that this command has seen in its samples since it began or "
        "since r was pressed. It is kept in this command, so that several readers do not disturb "
        "each other. PEAK is the process's own peak.\n\n"
        "Sites are the call stacks that allocated the blocks in use, estimated from a sample as by "
        "tensorpool profile. CHANGE is counted since the view was opened or r was pressed.\n\n"
        "With --name, the process need not run yet, and when it ends, the next one of that name is "
        "shown. With --pid, the status is 3 if the process ended.\n";
    command->callback([&settings, repetition] {
        settings.run = [&settings, repetition] {
            return settings.json ? print_samples(settings, *repetition)
                                 : watch_live(settings, *repetition);
        };
    });
    return command;
}

}  // namespace tensorpool::command
