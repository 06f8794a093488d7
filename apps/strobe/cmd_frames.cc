#include "command.h"
#include "frames_annotate.h"
#include "frames_evaluate.h"
#include "frames_extract.h"
#include "interrupt.h"

namespace strobe::app {

namespace {

class FramesCommand : public Command {
 public:
  const char* name() const override { return "frames"; }
  const char* summary() const override { return "Extract pictures, annotate them, evaluate boxes"; }
  const char* group() const override { return "Run"; }
  const char* example() const override {
    return "strobe frames extract street.mp4 --fps 2 -o pictures\n"
           "  strobe frames annotate pictures --model net.cfg --weights net.weights -o annotated\n"
           "  strobe frames evaluate annotated/annotations.json --truth truth.json";
  }

  void declare(CLI::App& app) override {
    app.require_subcommand(1);
    declare_extract(*app.add_subcommand("extract", "Pictures out of a video, and when they are shown"));
    declare_annotate(*app.add_subcommand("annotate", "A detector's boxes, drawn and in COCO's format"));
    declare_evaluate(*app.add_subcommand("evaluate", "COCO's average precision of detections"));
  }

  Result<int> run() override {
    if (extract_app_->parsed()) {
      if (extract_app_->count("--fps") > 0 && extract_app_->count("--every") > 0)
        return usage_error("--fps and --every: give one of them");
      if (extract_app_->count("--every") > 0 && extract_.every == 0)
        return usage_error("--every 0: expected at least 1");
      return extract_frames(extract_, stop_on_interrupt());
    }
    if (annotate_app_->parsed()) return annotate_frames(annotate_, stop_on_interrupt());
    return evaluate_detections(evaluate_);
  }

 private:
  void declare_extract(CLI::App& app) {
    extract_app_ = &app;
    ExtractFlags& f = extract_;
    app.add_option("input", f.input, "Video file, rtsp://... or /dev/videoN")->required();
    app.add_option("-o,--output", f.output, "Folder for the pictures and frames.csv")->required();
    app.add_option("--fps", f.fps, "Pictures a second of the video, at most")->capture_default_str();
    app.add_option("--every", f.every, "Instead: every Nth frame");
    app.add_option("--start", f.start, "From this time on: seconds, mm:ss or hh:mm:ss");
    app.add_option("--end", f.end, "Up to this time");
    app.add_option("--prefix", f.prefix, "Of the names: PREFIX_000001.png, ...")->capture_default_str();
    app.add_option("--format", f.format, "png or jpg")->capture_default_str();
    app.add_option("--quality", f.quality, "Of a jpg, 1 to 100 (best)")->capture_default_str();
    app.add_option("--size", f.size, "Scale to WIDTHxHEIGHT; a side of 0 follows the other one");
    app.add_flag("-q,--quiet", f.quiet, "No remarks on stderr");
  }

  void declare_annotate(CLI::App& app) {
    annotate_app_ = &app;
    AnnotateFlags& f = annotate_;
    app.add_option("input", f.input, "Folder of pictures, picture or video file")->required();
    app.add_option("-o,--output", f.output, "Folder for pictures or video, and annotations.json")->required();
    app.add_option("-m,--model", f.model,
                   "Built-in network, .json, Darknet .cfg, or a file the engine reads (.onnx .xml .pt)")
        ->capture_default_str();
    app.add_option("--weights", f.weights, "Weights of the network (Darknet .weights or .safetensors)");
    app.add_option("--labels", f.labels, "Class names, one a line");
    app.add_option("-e,--engine", f.engine, "torch, torch:script, openvino or opencv")->capture_default_str();
    app.add_option("--threshold", f.threshold, "Lowest score of a box")->capture_default_str();
    app.add_option("--nms", f.nms, "Overlap (IoU) above which the weaker box goes")->capture_default_str();
    app.add_option("--classes", f.classes, "Only these, by name, e.g. person,car")->delimiter(',');
    app.add_option("--size", f.size, "Network input as WIDTHxHEIGHT (default: its own)");
    app.add_option("--format", f.format, "Of pictures: jpg or png")->capture_default_str();
    app.add_flag("--pictures", f.pictures, "Of a video: one picture a frame instead of annotated.mp4");
    app.add_flag("-q,--quiet", f.quiet, "No progress and no remarks on stderr");
  }

  void declare_evaluate(CLI::App& app) {
    EvaluateFlags& f = evaluate_;
    app.add_option("detections", f.detections, "annotations.json, or a list of results in COCO's format")->required();
    app.add_option("--truth", f.truth, "The truth in COCO's format")->required();
    app.add_option("--format", f.format, "text, csv or json")->capture_default_str();
  }

  CLI::App *extract_app_ = nullptr, *annotate_app_ = nullptr;
  ExtractFlags extract_;
  AnnotateFlags annotate_;
  EvaluateFlags evaluate_;
};

}  // namespace

std::unique_ptr<Command> make_frames_command() {
  return std::make_unique<FramesCommand>();
}

}  // namespace strobe::app
