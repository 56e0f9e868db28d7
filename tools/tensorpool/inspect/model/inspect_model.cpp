#include "inspect/model/inspect_model.hpp"

#include <array>
#include <system_error>
#include <utility>

#include <tensorpool/model_hyperparameters.hpp>
#include <tensorpool/system_memory.hpp>

#include "common/output.hpp"
#include "common/printable.hpp"
#include "inspect/model/cards.hpp"
#include "inspect/model/contents.hpp"
#include "inspect/model/estimate/estimation.hpp"
#include "inspect/model/model_report.hpp"
#include "common/options.hpp"
#include "formats/trace/input.hpp"

namespace tensorpool::command::model {
namespace {

/// Calls a function of the library. A file that is damaged, that cannot be opened or that has
/// impossible values is unusable.
template <class Call>
auto checked(Call call) {
    try {
        return call();
    } catch (const ModelFileError& error) {
        throw CommandError(unusable, printable(error.what()));
    } catch (const HyperparameterError& error) {
        throw CommandError(unusable, printable(error.what()));
    } catch (const std::system_error& error) {
        throw CommandError(unusable, printable(error.what()));
    }
}

/// Returns the memory of this machine and its container, and that of a device: the given one, or
/// that of a card.
AvailableMemory memory_for(const Request& request) {
    AvailableMemory memory = {get_available_memory(), get_total_memory(), {}, {}};
    if (request.device_bytes) {
        memory.device = {"a device", *request.device_bytes, *request.device_bytes};
    } else {
        find_card(memory);
    }
    if (request.layers_on_device.value_or(0) > 0 && !memory.device) {
        throw CommandError(wrong_usage, "the memory of a card is unknown: " + memory.why_no_device +
                                            "; give the memory of the device for the layers with "
                                            "--device-memory");
    }
    return memory;
}

Estimation estimate_of(const ModelFile& file, const Request& request) {
    ModelDescription model = checked([&] { return describe_model(file); });
    Estimation estimation = make_estimation(std::move(model.hyperparameters),
                                            std::move(model.weights), request, memory_for(request));
    estimation.source = std::move(model.source);
    estimation.why_unknown = std::move(model.why_unknown);
    return estimation;
}

}  // namespace

bool is_model(const std::string& path) try {
    std::array<std::byte, 16> first{};
    trace::Input input(path);
    return guess_model_format(std::span(first).first(input.read(0, first))) != ModelGuess::none;
} catch (const CommandError&) {
    return false;
}

int inspect(const Settings& settings, const ModelOptions& options, const std::string& path,
            std::size_t top) {
    const ModelFile file = checked([&] { return ModelFile::open(path); });
    const Contents contents = sum_up(file, top);
    Report report{file, contents, top, std::nullopt};
    if (options.estimate) report.estimation = estimate_of(file, options.request);
    std::string text =
        settings.json ? json_report(report) : text_report(report, sizes_of(settings));
    if (!settings.json) text.pop_back();
    print_line(text);
    return report.estimation && !report.estimation->fits ? finding : success;
}

}  // namespace tensorpool::command::model
