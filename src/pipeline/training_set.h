// Labelled pictures for training: a folder with one folder a class, or a video or folder of pictures with COCO labels.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "media/source.h"
#include "models/coco.h"
#include "strobe/base/result.h"
#include "strobe/engines/trainer.h"
#include "strobe/models/graph.h"

namespace strobe::pipeline {

struct TrainingSetOptions {
  std::string input;
  media::SourceOptions source;
  // COCO JSON whose pictures are found by frame (video) or file name (folder). Empty: the folders of a folder are the
  // classes; otherwise classes are made up from the seed, which a classifier can learn by heart (a note says so).
  std::string targets;
  double hold_out = 0;   // this part of the labelled pictures, the last ones, is not trained on
  size_t shuffle = 128;  // pictures of which the next one is drawn at random; 1: in the order of the source
  uint64_t seed = 1;
};

// One picture with what it shows; boxes in pixels of the picture.
struct TrainingItem {
  media::Frame frame;
  engines::Target target;
};

// Used by one thread.
class TrainingSet {
 public:
  virtual ~TrainingSet() = default;
  // The next picture of this epoch; nothing at its end. Frames keep their place in the source as index.
  virtual Result<std::optional<TrainingItem>> next() = 0;
  // Begins epoch `number` (from 0), in an order of its own.
  virtual Result<void> begin_epoch(int64_t number) = 0;
  virtual int64_t items() const = 0;  // of an epoch; 0: not known
  virtual const media::SourceInfo& source() const = 0;
  // Of class folders: their names by class id; else empty.
  virtual const std::vector<std::string>& class_names() const = 0;
  // The labels that were held out, as COCO; empty without COCO labels.
  virtual const models::CocoDataset& held_out() const = 0;
  virtual int64_t damaged() const = 0;  // pictures that could not be read and were left out, each time counted
  virtual const std::vector<std::string>& notes() const = 0;
};

// graph: the network to be trained, for its classes and whether it wants boxes. Errors: kNotFound, kBadData (labels
// that are not the network's: says which it has), kUsage (a detector without labels, nothing to train on), those of
// media::open_source.
Result<std::unique_ptr<TrainingSet>> open_training_set(const models::Graph& graph, const TrainingSetOptions& options);

}  // namespace strobe::pipeline
