#pragma once

/// @file
/// `tensorpool inspect FILE` where the file is a model.

#include <string>

#include "common/settings.hpp"
#include "model/estimate/estimation.hpp"

namespace CLI {
class App;
}  // namespace CLI

namespace tensorpool::command::model {

struct ModelOptions {
    bool estimate = false;
    Asked asked;
};

/// --estimate, and what it is for. `options` must live as long as the command.
void add_options(CLI::App& command, ModelOptions& options);
/// What the manual says of models.
std::string manual_text();

/// By the first bytes of the file. What cannot be opened is none.
bool is_model(const std::string& path);

/// Prints the report. `success`, or `finding` where an estimate does not fit. Throws CommandError:
/// `unusable` for a file that is damaged or tells impossible figures.
int inspect(const Settings& settings, const ModelOptions& options, const std::string& path,
            std::size_t top);

}  // namespace tensorpool::command::model
