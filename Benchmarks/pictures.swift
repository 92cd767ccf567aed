// SPDX-License-Identifier: Apache-2.0

import FrameCore
import Glibc

/// What a picture's file costs: processor time of the calling thread, of a 1280x720 picture with some noise.
@main struct PictureCost {
    static func processorMs() -> Double {
        var time = timespec()
        clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time)
        return Double(time.tv_sec) * 1e3 + Double(time.tv_nsec) / 1e6
    }

    static func picture(_ pixelFormat: PixelFormat) throws -> StagePicture {
        var format = VideoFormat(pixelFormat, width: 1280, height: 720)
        format.color = ColorDescription(range: .video, matrix: 1)
        let picture = try StagePicture(format)
        var seed: UInt32 = 1
        for index in 0..<picture.planeCount {
            picture.withPlane(index) { plane in
                for y in 0..<plane.height {
                    let row = UnsafeMutablePointer(mutating: plane.baseAddress + y * plane.strideBytes)
                    for x in 0..<plane.rowBytes {
                        seed = seed &* 1_664_525 &+ 1_013_904_223
                        let smooth = index == 0 ? x / 6 + y / 8 : 110 + y / 20
                        row[x] = UInt8(truncatingIfNeeded: smooth + Int(seed >> 29))
                    }
                }
            }
        }
        return picture
    }

    static func main() throws {
        guard let library = dlopen(CommandLine.arguments[1], RTLD_NOW),
            let symbol = dlsym(library, "framehost_plugin_v1")
        else { fatalError(String(cString: dlerror())) }
        let entry = unsafeBitCast(symbol, to: (@convention(c) () -> OpaquePointer).self)
        let encoder = PluginExports.take(entry()).encoders[0].make()
        print("| from | file | p50 ms | p99 ms | kB |\n|---|---|---|---|---|")
        for pixelFormat in [PixelFormat.i420, .nv12, .yuyv, .bgra, .p010] {
            let picture = try picture(pixelFormat)
            for (kind, width, quality) in [
                (PictureForm.Kind.jpeg, 640, 80), (.jpeg, 320, 80), (.jpeg, 1280, 90), (.png, 1280, 90),
            ] {
                var form = PictureForm(kind)
                (form.width, form.quality) = (width, quality)
                var (times, count): ([Double], Int) = ([], 0)
                let rounds = kind == .png ? 20 : 200
                for round in 0..<rounds + 10 {
                    let begin = processorMs()
                    count = try encoder.encode(picture, as: form, takenAt: 1).count
                    if round >= 10 { times.append(processorMs() - begin) }
                }
                times.sort()
                func text(_ value: Double) -> String { "\((value * 100).rounded() / 100)" }
                let name = "\(kind) \(width)x\(width * 9 / 16)" + (kind == .jpeg ? " q\(quality)" : "")
                print(
                    "| \(pixelFormat) | \(name) | \(text(times[rounds / 2])) | \(text(times[rounds * 99 / 100])) | \(count / 1000) |"
                )
            }
        }
    }
}
