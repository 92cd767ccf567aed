// SPDX-License-Identifier: Apache-2.0

/// The status codes this server answers with (RFC 2326, 7.1.1).
enum RTSPStatus: UInt16, Sendable, CaseIterable {
    case ok = 200
    case badRequest = 400
    case unauthorized = 401
    case forbidden = 403
    case notFound = 404
    case methodNotAllowed = 405
    case requestTooLarge = 413
    case urlTooLong = 414
    case parameterNotUnderstood = 451
    case notEnoughBandwidth = 453
    case sessionNotFound = 454
    case notValidInThisState = 455
    case invalidRange = 457
    case aggregateNotAllowed = 459
    case onlyAggregateAllowed = 460
    case unsupportedTransport = 461
    case notImplemented = 501
    case serviceUnavailable = 503
    case versionNotSupported = 505
    case optionNotSupported = 551

    var reason: String {
        switch self {
        case .ok: "OK"
        case .badRequest: "Bad Request"
        case .unauthorized: "Unauthorized"
        case .forbidden: "Forbidden"
        case .notFound: "Not Found"
        case .methodNotAllowed: "Method Not Allowed"
        case .requestTooLarge: "Request Entity Too Large"
        case .urlTooLong: "Request-URI Too Large"
        case .parameterNotUnderstood: "Parameter Not Understood"
        case .notEnoughBandwidth: "Not Enough Bandwidth"
        case .sessionNotFound: "Session Not Found"
        case .notValidInThisState: "Method Not Valid in This State"
        case .invalidRange: "Invalid Range"
        case .aggregateNotAllowed: "Aggregate Operation Not Allowed"
        case .onlyAggregateAllowed: "Only Aggregate Operation Allowed"
        case .unsupportedTransport: "Unsupported Transport"
        case .notImplemented: "Not Implemented"
        case .serviceUnavailable: "Service Unavailable"
        case .versionNotSupported: "RTSP Version Not Supported"
        case .optionNotSupported: "Option not supported"
        }
    }
}

/// The methods of RFC 2326, 10, and what this server does with them.
enum RTSPMethod: String, Sendable, CaseIterable {
    case options = "OPTIONS"
    case describe = "DESCRIBE"
    case setup = "SETUP"
    case play = "PLAY"
    case pause = "PAUSE"
    case teardown = "TEARDOWN"
    case getParameter = "GET_PARAMETER"
    case setParameter = "SET_PARAMETER"
    case announce = "ANNOUNCE"
    case record = "RECORD"
    case redirect = "REDIRECT"

    /// Whether this server offers the method. It knows the others, but only plays.
    var isOffered: Bool {
        switch self {
        case .announce, .record, .redirect: false
        default: true
        }
    }

    /// The value of `Public` and `Allow`. FFmpeg keeps a session alive with GET_PARAMETER only where this list has it.
    static let offered = allCases.filter(\.isOffered).map(\.rawValue).joined(separator: ", ")
}
