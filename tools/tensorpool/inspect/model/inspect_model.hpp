#pragma once

/// @file
/// `tensorpool inspect FILE` for a file with a model.

#include <string>

#include "common/options.hpp"
#include "inspect/model/estimation.hpp"

namespace tensorpool::command::model {

struct ModelOptions {
    bool estimate = false;
    Request request;
};

/// Adds --estimate and its options to the command. Requires: `options` outlives the command.
void add_options(CLI::App& command, ModelOptions& options);
/// Returns the text about models for the manual.
std::string manual_text();

/// Returns whether the file is a model, by its first bytes. Returns false if it cannot be opened.
bool is_model(const std::string& path);

/// Prints the report. Returns `success`, or `finding` if an estimate does not fit. Throws
/// CommandError: `unusable` for a file that is damaged or has impossible values.
int inspect(const Settings& settings, const ModelOptions& options, const std::string& path,
            std::size_t top);

}  // namespace tensorpool::command::model
