import swagger from '@fastify/swagger';
import Fastify, {
  type FastifyBaseLogger,
  type FastifyError,
  type FastifyInstance,
  type FastifyReply,
  type FastifySchemaValidationError,
} from 'fastify';
import { DdfError, toDdfError } from '../../base/errors.ts';
import type { Logger } from '../../base/logger.ts';
import type { ControllerService } from '../service.ts';
import { problemOf } from './problem.ts';
import { registerRoutes } from './routes.ts';

export interface ApiOptions {
  readonly service: ControllerService;
  /** `HOST:PORT`; port 0 takes a free one. */
  readonly address: string;
  readonly logger: Logger;
}

export interface ApiServer {
  /** The base URL without a trailing slash. */
  readonly url: string;
  /** Ends open event streams and stops listening. */
  stop(): Promise<void>;
}

const MAX_BODY_BYTES = 4 << 20; // 100,000 server names fit

/** Builds the API without listening; tests inject requests into it. */
export async function buildApi(service: ControllerService, logger: Logger): Promise<FastifyInstance> {
  const app: FastifyInstance = Fastify({
    loggerInstance: logger.child({ part: 'api' }, { level: 'error' }) as FastifyBaseLogger,
    bodyLimit: MAX_BODY_BYTES,
    forceCloseConnections: true,
    // A request is taken as it was written or refused: nothing is coerced, filled in or dropped.
    frameworkErrors: (error, _request, reply) => sendProblem(reply as FastifyReply, translate(error)),
    ajv: { customOptions: { removeAdditional: false, coerceTypes: false, useDefaults: false, allErrors: false } },
  });
  await app.register(swagger, {
    openapi: {
      openapi: '3.1.0',
      info: {
        title: 'Data-distribution fabric',
        description: 'Who holds which version, and how it gets there.',
        version: '1',
      },
    },
  });
  app.setErrorHandler((error: FastifyError, _request, reply) => {
    const known = translate(error);
    if (known.code === 'INTERNAL') logger.error({ err: error }, 'request failed');
    return sendProblem(reply, known);
  });
  app.setNotFoundHandler((request, reply) =>
    sendProblem(
      reply,
      new DdfError('NOT_FOUND', `there is no ${request.method} ${request.url}`, {
        remedy: 'GET /openapi.json lists what there is.',
      }),
    ),
  );
  registerRoutes(app, service);
  app.get('/openapi.json', { schema: { hide: true } }, () => app.swagger());
  return app;
}

function sendProblem(reply: FastifyReply, error: DdfError): FastifyReply {
  const problem = problemOf(error);
  return reply.code(problem.status).type('application/problem+json').send(problem);
}

/** Throws ADDRESS_IN_USE when the port is taken. */
export async function startApi(options: ApiOptions): Promise<ApiServer> {
  const app = await buildApi(options.service, options.logger);
  const { host, port } = parseAddress(options.address);
  try {
    const url = await app.listen({ host, port });
    return { url, stop: () => app.close() };
  } catch (error) {
    await app.close();
    if ((error as NodeJS.ErrnoException).code === 'EADDRINUSE') {
      throw new DdfError('ADDRESS_IN_USE', `the REST API cannot listen on ${options.address}: the port is in use`, {
        where: options.address,
        remedy: 'Stop what listens there or choose another port.',
        cause: error,
      });
    }
    throw error;
  }
}

function parseAddress(address: string): { host: string; port: number } {
  const match = /^\[?([^[\]]+?)\]?:(\d{1,5})$/.exec(address);
  if (match === null || Number(match[2]) > 65535) {
    throw new DdfError('INVALID_OPTION', `'${address}' is not an address`, {
      remedy: 'Write HOST:PORT, such as 127.0.0.1:8080.',
    });
  }
  return { host: match[1]!, port: Number(match[2]) };
}

/** Fastify's own refusals (validation, malformed JSON, too large) are bad requests of the caller. */
function translate(error: FastifyError): DdfError {
  if (error instanceof DdfError) return error;
  if (error.validation !== undefined) {
    const part = error.validationContext ?? 'body';
    // Of alternatives every one says what it misses.
    const { length } = error.validation;
    const reasons = length > 1 ? error.validation.filter(({ keyword }) => keyword !== 'anyOf') : error.validation;
    const message = reasons.map((reason) => `${fieldOf(part, reason)} ${ruleOf(reason)}`).join(', or ');
    return invalidRequest(message, fieldOf(part, error.validation[length - 1]!), error);
  }
  if (error.statusCode !== undefined && error.statusCode < 500) {
    const status = error.statusCode;
    if (status === 415)
      return invalidRequest('the body is not declared as JSON (Content-Type: application/json)', 'body', error);
    if (status === 413) return invalidRequest(`the body is larger than ${MAX_BODY_BYTES} bytes`, 'body', error);
    const isBody = error.code?.startsWith('FST_ERR_CTP') || error instanceof SyntaxError;
    return invalidRequest(isBody ? 'the body is not valid JSON' : error.message, isBody ? 'body' : 'URL', error);
  }
  return toDdfError(error);
}

function invalidRequest(message: string, where: string, cause: Error): DdfError {
  return new DdfError('INVALID_REQUEST', message, {
    where,
    remedy: 'GET /openapi.json describes every request.',
    cause,
  });
}

function fieldOf(part: string, { instancePath }: FastifySchemaValidationError): string {
  return `${part}${instancePath.replaceAll('/', '.')}`;
}

function ruleOf({ keyword, message, params }: FastifySchemaValidationError): string {
  const { allowedValue, additionalProperty } = params;
  if (keyword === 'const') return `must be ${JSON.stringify(allowedValue)}`;
  if (keyword === 'additionalProperties') return `has an unknown field '${String(additionalProperty)}'`;
  return message ?? 'is not valid';
}
