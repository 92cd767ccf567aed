import FrameCore

/// Being written.
final class CropOrient: Transform {
    static let info = StageInfo(id: "crop-orient", summary: "", input: .anyVideo, output: .anyVideo)
    var options: NoOptions
    init(options: NoOptions, context: StageContext) { self.options = options }
    func negotiate(_ input: MediaFormat) throws -> MediaFormat { input }
    func process(_ input: consuming Sample, _ output: Output) throws {}
}
