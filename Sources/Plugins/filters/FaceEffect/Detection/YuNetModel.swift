// SPDX-License-Identifier: Apache-2.0

import FrameCore
import Glibc

/// Which of YuNet's models a file is, recognised by the names of its outputs.
enum YuNetModel: String, Sendable, CaseIterable {
    /// Outputs `loc`, `conf`, `iou`: OpenCV 4.5.4 to 4.7.
    case of2022 = "face_detection_yunet_2022mar.onnx"
    /// Twelve outputs `cls_8` … `kps_32`: OpenCV 4.8 and later.
    case of2023 = "face_detection_yunet_2023mar.onnx"

    var year: Int { self == .of2022 ? 2022 : 2023 }

    /// The command that fetches it.
    var fetchCommand: String { "framehost models fetch yunet-\(year)mar" }

    /// The one that the loaded OpenCV reads.
    static var wanted: YuNetModel { OpenCV.readsYuNet2023 ? .of2023 : .of2022 }

    /// Names it may have in a data folder.
    var fileNames: [String] { [rawValue, "yunet.onnx"] }

    /// Reads the file; nil when it is neither.
    ///
    /// - Throws: ``FrameHostError`` `.unavailable` when it cannot be read.
    static func kind(of path: String) throws -> YuNetModel? {
        let bytes = try contents(of: path)
        func has(_ name: String) -> Bool {
            let wanted = Array(name.utf8)
            return bytes.indices.dropLast(wanted.count - 1).contains { start in
                bytes[start] == wanted[0] && bytes[start..<(start + wanted.count)].elementsEqual(wanted)
            }
        }
        // A name of ONNX's protobuf: its length, then its letters.
        if has("\u{6}cls_32"), has("\u{6}kps_32") { return .of2023 }
        if has("\u{3}loc"), has("\u{4}conf"), has("\u{3}iou") { return .of2022 }
        return nil
    }

    /// At most 64 MB of a file; models have less than one.
    private static func contents(of path: String) throws -> [UInt8] {
        guard let file = fopen(path, "rbe") else { throw FileFault.cannotRead(path, errno) }
        defer { fclose(file) }
        var bytes = [UInt8](repeating: 0, count: 64 << 20)
        let count = fread(&bytes, 1, bytes.count, file)
        if ferror(file) != 0 { throw FileFault.cannotRead(path, errno) }
        return Array(bytes[..<count])
    }
}
