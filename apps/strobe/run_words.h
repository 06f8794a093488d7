// What the words among the flags of `strobe run` mean, and what both of its modes open.
#pragma once

#include <optional>

#include "media/filter.h"
#include "media/source.h"
#include "pipeline/runner.h"
#include "run_flags.h"
#include "strobe/base/result.h"
#include "strobe/engines/engine.h"

namespace strobe::app {

struct Words {
  engines::Precision precision = engines::Precision::kF32;
  engines::Hint hint = engines::Hint::kThroughput;
  std::optional<pipeline::DropPolicy> drop;
  media::SourceOptions::RtspTransport transport = media::SourceOptions::RtspTransport::kTcp;
  media::PrepLevel prep_level = media::PrepLevel::kSimple;
  int64_t width = 0, height = 0;
};
// Errors: kUsage, saying which words there are.
Result<Words> parse_words(const RunFlags& flags);

media::SourceOptions source_options(const RunFlags& flags, const Words& words);
// The filters that --prep-level or --prep-filter asks for; empty: none.
std::string prep_filter(const RunFlags& flags, const Words& words);

// Whether the engine runs on flags.device, and preprocesses there where it is to: asked before anything is written.
// Errors: kUnsupported.
Result<void> check_device(const RunFlags& flags, const engines::Engine& engine);

// How the inference threads are dealt out: sessions and threads of each. Of load, hint is read.
void set_threads(const RunFlags& flags, engines::LoadOptions& load);

// The network as the engine takes it: a graph, or the path of a file that it reads itself.
Result<engines::ModelSource> open_model(const RunFlags& flags, const Words& words, const engines::Engine& engine);

}  // namespace strobe::app
