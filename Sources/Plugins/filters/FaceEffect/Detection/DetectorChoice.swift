// SPDX-License-Identifier: Apache-2.0

import FrameCore
import FrameSupport
import Shared

/// Which detector a chain gets, from its options and what is installed.
struct DetectorChoice {
    enum Kind: String, Sendable { case yunet, haar, lbp }

    var kind: Kind
    /// Whether the user named the file.
    let isNamed: Bool
    /// The cascade or model.
    var path: String
    /// Set where `auto` found no YuNet model: what it looked for, and where.
    var missing: String?

    private static let cascadeFolders = ["/usr/share/opencv4", "/usr/share/opencv", "/usr/local/share/opencv4"]
    private static let haarName = "haarcascade_frontalface_alt2.xml"
    private static let lbpName = "lbpcascade_frontalface.xml"

    /// [control thread] Looks for files; opens none.
    ///
    /// - Parameter model: As the user wrote it, resolved.
    /// - Throws: ``FrameHostError`` `.unavailable` with what to install or name.
    init(_ wanted: DetectorName, model: String?, folders: DataFolders) throws {
        isNamed = model != nil
        func named(_ path: String) throws -> String { try Self.named(path, for: wanted) }
        switch wanted {
        case .auto:
            if let model {
                // A cascade is XML, a model is not.
                kind = model.lowercased().hasSuffix(".xml") ? .haar : .yunet
                path = try named(model)
            } else if let found = folders.find(YuNetModel.wanted.fileNames) {
                kind = .yunet
                path = found
            } else {
                kind = .haar
                path = try Self.cascade(Self.haarName, subfolder: "haarcascades", folders, insteadOfModel: true)
                missing = Self.lookedFor(folders)
            }
        case .yunet:
            kind = .yunet
            if let model {
                path = try named(model)
            } else if let found = folders.find(YuNetModel.wanted.fileNames) {
                path = found
            } else {
                throw Self.noModel(folders)
            }
        case .haar:
            kind = .haar
            path = try model.map(named) ?? Self.cascade(Self.haarName, subfolder: "haarcascades", folders)
        case .lbp:
            kind = .lbp
            path = try model.map(named) ?? Self.cascade(Self.lbpName, subfolder: "lbpcascades", folders)
        }
    }

    /// When looking ahead, YuNet reports faces down to this confidence. So weak a detection never begins a face,
    /// but guides one that is carried back.
    static let weakThreshold = 0.3

    /// How finely it searches at first, and the coarser sizes that a live chain with privacy may take instead.
    func sizes(_ options: FaceEffectOptions, _ format: VideoFormat, isLive: Bool) throws -> [SearchSizes] {
        guard kind == .yunet else { return [SearchSizes(side: options.detectionSize ?? 640)] }
        if let side = options.detectionSize {
            let tracking = options.privacy ? SearchSizes.smallSide : SearchSizes.coarseSide
            return [SearchSizes(yunet: side, tracking: min(side, tracking), format)]
        }
        return try SearchSizes.yunet(
            format, isPrivate: options.privacy, isLive: isLive, least: options.leastDetectionSize
        ) { try nanosecondsPerPixel(options) }
    }

    /// How long a search takes on this machine as it is now: the best of six on an empty picture.
    private func nanosecondsPerPixel(_ options: FaceEffectOptions) throws -> Double {
        let size = PictureSize(320, 192)
        OpenCV.useOneThread()
        let detector = try openYuNet(options, searches: 1, threshold: options.keepThreshold)
        return try withUnsafeTemporaryAllocation(of: UInt8.self, capacity: size.width * size.height * 3) { pixels in
            pixels.initialize(repeating: 128)
            return try withUnsafeTemporaryAllocation(of: Detection.self, capacity: 1) { room in
                let picture = DetectorPicture(
                    pixels: pixels.baseAddress!, width: size.width, height: size.height, searches: [size])
                var best = Int64.max
                for _ in 0..<6 {
                    let start = MonotonicTime.now()
                    do { _ = try detector.detect(picture, into: room) } catch {
                        throw unusable(FrameHostError.wrap(error))
                    }
                    best = min(best, MonotonicTime.now() - start)
                }
                return Double(best) / Double(size.width * size.height)
            }
        }
    }

    /// [control thread] Opens the detector and searches an empty picture once, so that a fault is reported before
    /// the chain starts.
    ///
    /// - Parameter sizes: What it may search in, first the one it begins with.
    /// - Throws: ``FrameHostError`` `.unavailable`.
    func open(
        _ options: FaceEffectOptions, _ format: VideoFormat, _ sizes: [SearchSizes], looksAhead: Bool = false
    ) throws -> any FaceDetecting {
        OpenCV.useOneThread()
        let detector: any FaceDetecting =
            switch kind {
            case .yunet:
                try openYuNet(
                    options, searches: sizes.map(\.sides.count).max() ?? 1,
                    threshold: looksAhead ? min(Self.weakThreshold, options.keepThreshold) : options.keepThreshold)
            case .haar, .lbp: try openCascade(options)
            }
        guard let first = sizes.first else { return detector }
        let copy = SmallPicture.copySize(first, format, detector.input).turned(by: format.orientation)
        let (width, height) = (copy.width, copy.height)
        let count = width * height * (detector.input == .bgr ? 3 : 1)
        try withUnsafeTemporaryAllocation(of: UInt8.self, capacity: count) { pixels in
            pixels.initialize(repeating: 128)
            try withUnsafeTemporaryAllocation(of: Detection.self, capacity: 1) { room in
                let picture = DetectorPicture(
                    pixels: pixels.baseAddress!, width: width, height: height,
                    searches: first.searched(format, format.orientation))
                do { _ = try detector.detect(picture, into: room) } catch { throw unusable(FrameHostError.wrap(error)) }
            }
        }
        return detector
    }

    private func openYuNet(
        _ options: FaceEffectOptions, searches: Int, threshold: Double
    ) throws -> any FaceDetecting {
        let wanted = YuNetModel.wanted
        switch try YuNetModel.kind(of: path) {
        case wanted: break
        case let other?:
            throw FrameHostError(
                .unavailable,
                what:
                    "\(path) is YuNet's model of \(other.year); OpenCV \(OpenCV.version) needs the model of \(wanted.year)",
                remedy: remedyOfOtherModel, option: "model")
        case nil:
            throw FrameHostError(
                .unavailable, what: "\(path) is not a YuNet model",
                remedy: remedyOfOtherModel, option: "model")
        }
        do {
            return try YuNetDetector(
                path: path, searches: searches, threshold: threshold,
                merge: FindingMerge(begins: options.threshold, keeps: options.keepThreshold))
        } catch {
            throw unusable(FrameHostError.wrap(error))
        }
    }

    private var remedyOfOtherModel: String {
        let wanted = YuNetModel.wanted
        return isNamed
            ? "Name \(wanted.rawValue), or leave 'model' out and fetch it with '\(wanted.fetchCommand)'."
            : "Remove this file, then fetch the model with '\(wanted.fetchCommand)'."
    }

    private func openCascade(_ options: FaceEffectOptions) throws -> any FaceDetecting {
        do {
            return try CascadeDetector(
                path: path,
                settings: CascadeDetector.Settings(
                    scaleStep: options.scaleStep, neighbours: options.neighbours, smallest: options.smallestFace,
                    equalizes: options.equalize),
                fit: kind == .haar ? .haar : .lbp)
        } catch {
            throw FrameHostError(
                .unavailable, what: "\(path) must be a cascade that OpenCV \(OpenCV.version) can read",
                remedy: options.model == nil
                    ? remedyOfFoundCascade
                    : "Name one of OpenCV's frontal-face cascades, or leave 'model' out.",
                cause: FrameHostError.wrap(error).cause, option: "model")
        }
    }

    private func unusable(_ fault: FrameHostError) -> FrameHostError {
        FrameHostError(
            .unavailable, what: "\(path) does not work with OpenCV \(OpenCV.version)",
            remedy: kind == .yunet
                ? "Remove the file, which may be damaged, and fetch the model again with '\(YuNetModel.wanted.fetchCommand)'.\(isNamed ? " Then leave 'model' out." : "")"
                : "Name another cascade with 'model'\(isNamed ? ", or leave 'model' out" : ""). \(remedyOfFoundCascade)",
            cause: fault.cause, option: "model")
    }

    /// A cascade of the same name in a data folder comes before that of the package.
    private var remedyOfFoundCascade: String {
        Self.cascadeFolders.contains { path.hasPrefix("\($0)/") }
            ? "The file may be damaged: install the package opencv-data again."
            : "The file may be damaged: remove or replace it."
    }

    private static func named(_ path: String, for wanted: DetectorName) throws -> String {
        guard DataFolders.exists(path) else {
            let kinds =
                switch wanted {
                case .auto: "a YuNet model (.onnx) or a cascade (.xml)"
                case .yunet: "a YuNet model (.onnx)"
                case .haar, .lbp: "a cascade (.xml)"
                }
            throw FrameHostError(
                .unavailable, place: "model", what: "\(path) does not exist, cannot be read or is not a file",
                remedy:
                    "Name \(kinds). A relative path starts at the chain file's folder."
            )
        }
        return path
    }

    /// - Parameter insteadOfModel: Whether it is looked for because there is no YuNet model.
    private static func cascade(
        _ name: String, subfolder: String, _ folders: DataFolders, insteadOfModel: Bool = false
    ) throws -> String {
        let places = cascadeFolders.map { "\($0)/\(subfolder)" }
        if let path = folders.find([name]) ?? DataFolders(folders: places).find([name]) { return path }
        throw FrameHostError(
            .unavailable,
            what: insteadOfModel
                ? "neither a YuNet model nor the cascade \(name) was found" : "the cascade \(name) was not found",
            remedy: insteadOfModel
                ? "Fetch the model with '\(YuNetModel.wanted.fetchCommand)', or, without 'privacy', install the package opencv-data, which has the cascade."
                : "Install the package opencv-data, or name a cascade with 'model'.",
            cause: "Looked in \((folders.folders + places).joined(separator: ", ")).", option: "privacy")
    }

    /// Privacy covers only faces that are found. A detector that misses many is used only where the chain accepts
    /// that.
    ///
    /// - Throws: ``FrameHostError`` `.invalidConfiguration`.
    func checkPrivacy(_ options: FaceEffectOptions) throws {
        guard options.privacy, kind != .yunet, !options.acceptMissedFaces else { return }
        let command = YuNetModel.wanted.fetchCommand
        throw FrameHostError(
            .invalidConfiguration, place: "privacy",
            what: missing == nil
                ? "the detector '\(kind.rawValue)' (\(path)) misses small, turned and tilted faces, and would leave them visible"
                : "the YuNet model was not found, and privacy needs it: the detector '\(kind.rawValue)' misses small, turned and tilted faces, and would leave them visible",
            remedy: missing == nil
                ? "Fetch the YuNet model with '\(command)' and set \"detector\": \"yunet\"\(options.model == nil ? "" : " without \"model\""), or write \"acceptMissedFaces\": true."
                : "Fetch the model with '\(command)', name it with \"model\", or write \"acceptMissedFaces\": true.",
            cause: missing ?? "")
    }

    /// Notes about the detector, for `check` and the first lines of a run.
    func note(_ options: FaceEffectOptions, _ format: VideoFormat, _ sizes: SearchSizes, to context: StageContext) {
        if let missing {
            context.note(
                "no YuNet model was found; \(kind.rawValue) is used instead and misses small, turned and tilted faces; '\(YuNetModel.wanted.fetchCommand)' fetches the model. \(missing.dropLast())",
                isWarning: true)
        } else if options.privacy, kind != .yunet {
            context.note(
                "\(kind.rawValue) misses small, turned and tilted faces, which stay uncovered: 'acceptMissedFaces' permits this",
                isWarning: true)
        }
        context.note(sentence(options, format, sizes))
    }

    /// Which detector searches, with which file, and how finely.
    func sentence(_ options: FaceEffectOptions, _ format: VideoFormat, _ sizes: SearchSizes) -> String {
        "searches for faces with \(kind.rawValue): \(path), OpenCV \(OpenCV.version); \(reach(options, format, sizes))"
    }

    /// How finely it searches, and how small a face it then finds.
    private func reach(_ options: FaceEffectOptions, _ format: VideoFormat, _ sizes: SearchSizes) -> String {
        if kind == .yunet {
            let searched = sizes.searched(format).map { "\($0.width)x\($0.height)" }
            let smallest = sizes.smallestYuNetFace(format)
            return
                "on \(searched.joined(separator: " and ")) pixels; finds 95 % of the faces that are \(smallest) pixels wide, and fewer of the smaller ones"
        }
        let copy = SmallPicture.squareSize(format, longSide: sizes.copySide)
        let upright = copy.turned(by: format.orientation).height
        let full = PictureGeometry(format).upright.size.height
        let smallest = max(Double(upright) * options.smallestFace, 20) * Double(full) / Double(max(upright, 1))
        return
            "on \(copy.width)x\(copy.height) pixels; finds upright faces seen from the front that are at least \(Int(smallest.rounded(.up))) pixels wide"
    }

    private static func lookedFor(_ folders: DataFolders) -> String {
        "OpenCV \(OpenCV.version) reads \(YuNetModel.wanted.rawValue); looked in \(folders.folders.joined(separator: ", "))."
    }

    private static func noModel(_ folders: DataFolders) -> FrameHostError {
        let wanted = YuNetModel.wanted
        return FrameHostError(
            .unavailable, what: "no YuNet model was found: OpenCV \(OpenCV.version) reads \(wanted.rawValue)",
            remedy: "Fetch it with '\(wanted.fetchCommand)', or name it with \"model\".",
            cause: "Looked in \(folders.folders.joined(separator: ", ")).", option: "detector")
    }
}
