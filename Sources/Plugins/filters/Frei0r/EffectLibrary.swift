// SPDX-License-Identifier: Apache-2.0

import CFrei0r
import FrameCore
import Glibc

/// An effect's library, loaded. It stays in the process: some effects leave threads and handlers behind that outlive a
/// dlclose(3).
///
/// - SeeAlso: frei0r 1.2, f0r_init, f0r_get_plugin_info, f0r_get_param_info.
struct EffectLibrary {
    /// frei0r.h, PLUGIN_TYPE.
    enum Kind: Int32 {
        case filter, source, mixer2, mixer3

        /// For people.
        var words: String {
            switch self {
            case .filter: "filter"
            case .source: "source"
            case .mixer2: "mixer of two"
            case .mixer3: "mixer of three"
            }
        }
    }
    /// frei0r.h, COLOR_MODEL.
    enum ColorModel: Int32 { case bgra, rgba, packed }

    /// As its file is called.
    let name: String
    let kind: Kind
    let colorModel: ColorModel
    let explanation: String
    let author: String
    /// The effect's own: `1.2`.
    let version: String
    let path: String
    let parameters: [EffectParameter]
    let functions: EffectFunctions

    /// Whether f0r_init succeeded, by handle: it is called once per library and process, whichever chain is first.
    private static let started = Locked<[UInt: Bool]>([:])

    /// Loads it, unless it is loaded already. [control thread]
    ///
    /// - Throws: ``FrameHostError`` for a file that does not load, is not a frei0r effect, or is one of another
    ///   version.
    init(path: String) throws {
        let file = path.split(separator: "/").last.map(String.init) ?? path
        name = file.hasSuffix(".so") ? String(file.dropLast(3)) : file
        self.path = path
        guard let handle = dlopen(path, RTLD_NOW | RTLD_LOCAL) else {
            throw FrameHostError(
                .unavailable, place: "effect", what: "\(path) could not be loaded",
                remedy: "If a library is missing, install it; otherwise use another effect.",
                cause: dlerror().map { String(cString: $0) } ?? "")
        }
        let functions = try EffectFunctions(handle, path: path)
        self.functions = functions
        let isStarted = Self.started.withLock { started in
            let key = UInt(bitPattern: handle)
            let result = started[key] ?? (functions.initialize() >= 0)
            started[key] = result
            return result
        }
        guard isStarted else {
            throw FrameHostError(
                .callFailed, place: "effect", what: "\(path) could not be started (f0r_init)",
                remedy: "Use another effect.")
        }
        var info = f0r_plugin_info()
        functions.getInfo(&info)
        func unfit(_ what: String) -> FrameHostError {
            FrameHostError(.unavailable, place: "effect", what: "\(path) \(what)", remedy: "Use another effect.")
        }
        guard info.frei0r_version == FREI0R_MAJOR_VERSION else {
            throw unfit("is of frei0r version \(info.frei0r_version), but must be of version \(FREI0R_MAJOR_VERSION)")
        }
        guard let kind = Kind(rawValue: info.plugin_type) else {
            throw unfit("is of frei0r's type \(info.plugin_type), but must be of a type from 0 to 3")
        }
        guard let colorModel = ColorModel(rawValue: info.color_model) else {
            throw unfit("has frei0r's colour model \(info.color_model), but must have one from 0 to 2")
        }
        self.kind = kind
        self.colorModel = colorModel
        explanation = info.explanation.map { String(cString: $0) } ?? ""
        author = info.author.map { String(cString: $0) } ?? ""
        version = "\(info.major_version).\(info.minor_version)"
        parameters = (0..<max(Int(info.num_params), 0)).compactMap { index in
            var parameter = f0r_param_info()
            functions.getParameterInfo(&parameter, Int32(index))
            let kinds: [Int32: EffectParameter.Kind] = [
                F0R_PARAM_BOOL: .bool, F0R_PARAM_DOUBLE: .number, F0R_PARAM_COLOR: .color,
                F0R_PARAM_POSITION: .position,
                F0R_PARAM_STRING: .string,
            ]
            guard let name = parameter.name, let kind = kinds[parameter.type] else { return nil }
            return EffectParameter(
                index: index, name: String(cString: name), kind: kind,
                explanation: parameter.explanation.map { String(cString: $0) } ?? "")
        }
    }
}

/// The functions of one effect, as frei0r.h declares them.
struct EffectFunctions {
    typealias Instance = UnsafeMutableRawPointer
    typealias Pixels = UnsafePointer<UInt32>
    typealias Update = @convention(c) (Instance, Double, Pixels?, UnsafeMutablePointer<UInt32>) -> Void
    typealias Update2 =
        @convention(c) (Instance, Double, Pixels?, Pixels?, Pixels?, UnsafeMutablePointer<UInt32>) -> Void

    let initialize: @convention(c) () -> Int32
    let getInfo: @convention(c) (UnsafeMutablePointer<f0r_plugin_info>) -> Void
    let getParameterInfo: @convention(c) (UnsafeMutablePointer<f0r_param_info>, Int32) -> Void
    let construct: @convention(c) (UInt32, UInt32) -> Instance?
    let destruct: @convention(c) (Instance) -> Void
    let setParameter: @convention(c) (Instance, UnsafeMutableRawPointer, Int32) -> Void
    let getParameter: @convention(c) (Instance, UnsafeMutableRawPointer, Int32) -> Void
    /// An effect has one of these or both.
    let update: Update?
    let update2: Update2?

    init(_ handle: UnsafeMutableRawPointer, path: String) throws {
        var missing: String?
        func find<Function>(_ name: String, as type: Function.Type) -> Function? {
            dlsym(handle, name).map { unsafeBitCast($0, to: type) }
        }
        func need<Function>(_ name: String, as type: Function.Type) throws -> Function {
            if let function = find(name, as: type) { return function }
            missing = name
            throw FrameHostError(
                .unavailable, place: "effect",
                what: "\(path) must be a frei0r effect, but has no function \(missing!)",
                remedy: "Name the library of a frei0r effect.")
        }
        initialize = try need("f0r_init", as: type(of: initialize))
        getInfo = try need("f0r_get_plugin_info", as: type(of: getInfo))
        getParameterInfo = try need("f0r_get_param_info", as: type(of: getParameterInfo))
        construct = try need("f0r_construct", as: type(of: construct))
        destruct = try need("f0r_destruct", as: type(of: destruct))
        setParameter = try need("f0r_set_param_value", as: type(of: setParameter))
        getParameter = try need("f0r_get_param_value", as: type(of: getParameter))
        update = find("f0r_update", as: Update.self)
        update2 = find("f0r_update2", as: Update2.self)
        if update == nil, update2 == nil { _ = try need("f0r_update", as: Update.self) }
    }
}
