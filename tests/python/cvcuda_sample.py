"""A benchmarked program in the style of CV-CUDA's samples: decoding, preprocessing and inference of made-up images."""
import logging

import numpy

from strobe.cvcuda import CvCudaPerf, get_default_arg_parser, parse_validate_default_args

BATCHES = 6


def run_sample(args, perf):
    logger = logging.getLogger(__name__)
    random = numpy.random.default_rng(7)
    weights = random.random((3, 16), dtype=numpy.float32)
    perf.push_range("run_sample")
    perf.push_range("pipeline")
    for batch in range(BATCHES):
        perf.push_range("batch", batch_idx=batch)
        perf.push_range("decoder.decode", color="green")
        images = random.random((args.batch_size, args.target_img_height, args.target_img_width, 3), dtype=numpy.float32)
        perf.pop_range()
        perf.push_range("preprocess", domain="sample", category="host")
        images -= images.mean(axis=(1, 2), keepdims=True)
        perf.pop_range(domain="sample")
        perf.push_range("inference")
        scores = (images @ weights).max(axis=(1, 2))
        perf.pop_range()
        perf.pop_range(total_items=len(scores))
        logger.info("batch %d: %d images", batch, len(scores))
    perf.pop_range()
    perf.pop_range()
    perf.finalize()


def main():
    parser = get_default_arg_parser("A benchmark of nothing in particular", input_path="/", target_img_height=64,
                                    target_img_width=64, backend="pytorch")
    args = parse_validate_default_args(parser)
    run_sample(args, CvCudaPerf("nothing_in_particular", default_args=args))


if __name__ == "__main__":
    main()
