import { messagePlan } from '../proto.ts';
import { parseTextMessage } from '../proto-text.ts';
import type { P4Info } from './p4info-messages.ts';

/**
 * Reads a P4Info in protobuf text format (.p4info.txtpb), as p4c writes it.
 * @param source names the text in errors
 * @throws DdfError INVALID_FILE with `where` as source:line:column
 */
export function parseP4InfoText(text: string, source = 'P4Info'): P4Info {
  return parseTextMessage(messagePlan('p4.config.v1.P4Info'), text, source) as unknown as P4Info;
}
