"""Finds the meanings that a word of a page's control may have, in English and in the languages into
which browsers translate pages. Pure.

Each line of `_TABLE` is one meaning. `*` marks an action. `!` marks an action that an element may
name only if the lost element names it, too: buttons "delete export" and "export help" do not
replace the button "export". A word on two lines may have either meaning.
"""

from __future__ import annotations

from functools import lru_cache

# A word of six letters or more has the meaning of a table word that it begins with, if the table
# does not have the word itself: "canceling" means "cancel".
_BEGINNING = 6
_TABLE = """
*import importieren importar importer importa importare importeren upload hochladen téléverser
    subir carica caricare einlesen
*export exportieren exportar exporter esporta esportare exporteren download herunterladen laden
    télécharger descargar baixar scarica scaricare fetch get
*search find suchen suche finden buscar buscador rechercher recherche chercher cerca cercare
    pesquisar procurar zoeken
*save speichern sichern guardar enregistrer sauvegarder salva salvare salvar opslaan
*apply anwenden übernehmen aplicar appliquer applica applicare
*submit send post senden absenden abschicken enviar envoyer soumettre invia inviare
*add create new append hinzufügen anlegen erstellen neu neue neuer neuen neues añadir agregar
    crear nuevo nueva ajouter créer nouveau nouvelle aggiungi crea nuovo nuova adicionar criar
    novo nova
*edit change modify bearbeiten ändern editar modificar modifier éditer changer modifica alterar
*copy duplicate clone kopieren duplizieren copiar copier dupliquer copia copiare duplica
*paste einfügen pegar coller incolla colar
*print drucken ausdrucken imprimir imprimer stampa stampare
*share teilen freigeben compartir partager condividi compartilhar
*login signin anmelden anmeldung einloggen acceder entrar connexion connecter accedi
!logout signout abmelden ausloggen salir déconnexion déconnecter esci sair
*register signup registrieren registrarse registrar inscrire registrati
*next following weiter nächste nächster nächstes vor siguiente próximo próxima suivant suivante
    successivo avanti seguinte
!previous prev back zurück vorherige vorige anterior précédent précédente retour precedente
    indietro volver voltar return
*continue proceed keep weiter fortfahren fortsetzen continuar continuer poursuivre continua
*confirm accept approve ok agree bestätigen zustimmen annehmen confirmar aceptar confirmer
    accepter conferma accetta
*verify check validate review prüfen überprüfen verificar comprobar vérifier verifica
*run execute ausführen ejecutar exécuter esegui executar
*selectall
*toggle umschalten alternar basculer commuta
*show view display see anzeigen zeigen ansehen mostrar ver afficher voir mostra visualizza exibir
*sort sortieren sortierung ordenar trier tri ordina
*filter filtern gefiltert filtrar filtro filtrer filtre filtra
*move transfer verschieben mover transferir déplacer transférer sposta trasferisci
*redeem einlösen canjear utiliser riscatta
*reply answer antworten responder répondre rispondi
*browse durchsuchen examinar parcourir sfoglia
*publish veröffentlichen publicar publier pubblica
*pay buy purchase bezahlen kaufen pagar comprar payer acheter paga compra
*checkout kasse bestellen
!refund erstatten reembolsar rembourser rimborsa
!delete delet deleting remove remov trash löschen entfernen eliminar borrar quitar supprimer
    effacer elimina rimuovi excluir remover destroy erase wipe discard verwerfen descartar
!clear empty leeren vaciar limpiar vider svuota
!reset zurücksetzen restablecer réinitialiser ripristina redefinir
!not don never without skip nicht kein keine keinen ohne niemals nunca sin ne pas sans jamais senza
    não sem
!cancel abort canceled cancellation abbrechen stornieren cancelar annuler annula
!close dismiss schließen cerrar fermer chiudi fechar
*open öffnen abrir ouvrir apri
!reopen
!hide hides hidden hiding ausblenden verbergen ocultar masquer cacher nascondi
!stop stopped stops pause anhalten stoppen detener arrêter ferma parar
!disable disabl deactivate deactivat decline reject refuse deny deaktivieren ablehnen desactivar
    rechazar désactiver refuser disattiva rifiuta
!undo undone revert rückgängig deshacer annulla desfazer
!restore restor recover wiederherstellen restaurar restaurer
*archive archiv archivieren archivar archiver archivia
!lock sperren bloquear verrouiller blocca
!schedule schedul planen zeitplan programar planifier programmer pianifica agendar
!preview vorschau previsualizar aperçu anteprima
!help helps how guide faq tutorial learn documentation docs about hilfe anleitung ayuda guía aide
    aiuto guida ajuda
!history histor log logs verlauf historie historial historique cronologia histórico
!settings setting preferences preferenc configure configur setup einstellungen ajustes
    configuración paramètres préférences impostazioni configurações
template templat sample example vorlage beispiel plantilla ejemplo modèle exemple modello
important
order bestellung bestellungen auftrag pedido pedidos commande commandes ordine ordini ordre
price preis preise precio precios prix prezzo prezzi preço
inventory stock bestand lager inventario inventaire inventário
product item artikel produkt producto artículo produit article prodotto articolo produto
customer buyer kunde kunden käufer cliente comprador client acheteur acquirente
report bericht berichte informe rapport rapporto relatorio relatório
sale verkauf verkäufe venta ventas vente ventes vendita vendite
payment zahlung zahlungen pago pagos paiement pagamento
shipping shipment delivery versand lieferung envío envíos livraison expédition spedizione consegna
card karte karten carta tarjeta carte cartes
page seite página pagina
file datei archivo fichier arquivo
name nombre nom nome
username benutzername usuario utilisateur utente usuário
password passwort kennwort contraseña passe senha
email mail correo courriel
address adresse dirección indirizzo endereço
street straße calle rue via
city town stadt ort ciudad ville città cidade
country land país pays paese
state province provincia
zip postal postcode plz
phone telephone telefon teléfono téléphone telefono
date datum fecha data
start begin from beginn anfang von desde inicio début inizio
end until to ende bis hasta fin fine
day tag día jour giorno dia
month monat mes mois mese
year jahr año année anno
all every everything alle alles todo todos todas tout tous toutes tutto tutti
last latest letzte letzter letztes letzten dernier dernière último última ultimo ultima
active aktiv activo actif attivo
completed done complete erledigt erledigte abgeschlossen completado completados terminé terminées
comment note remark kommentar comentario commentaire commento
message nachricht mensaje messaggio
description describe beschreibung descripción descripto descrizione
condition zustand estado état condizione
language sprache idioma langue lingua
set expansion edition edición édition
code kode código codice
cart basket warenkorb carrito panier carrello
menu burger hamburger menü menú
coupon promo promotion voucher gutschein gutscheincode cupón
forgot forgotten vergessen olvidado olvidaste oublié dimenticata
remember merken recordar souvenir ricorda
quantity qty amount menge anzahl cantidad quantité quantità
issue ticket problem
size größe tamaño taille
bold fett negrita gras grassetto
italic kursiv cursiva italique corsivo
text texto texte testo
feedback rating review bewertung bewertungen opiniones avis valutazione
"""


def _read() -> tuple[dict[str, frozenset[int]], frozenset[int], frozenset[int]]:
    meanings: dict[str, set[int]] = {}
    acts: set[int] = set()
    turns: set[int] = set()
    lines = _TABLE.strip().replace("\n    ", " ").splitlines()
    for number, line in enumerate(lines):
        if line[0] in "*!":
            acts.add(number)
        if line[0] == "!":
            turns.add(number)
        for word in line.lstrip("*!").split():
            meanings.setdefault(word, set()).add(number)
    return {word: frozenset(m) for word, m in meanings.items()}, frozenset(acts), frozenset(turns)


_MEANINGS, _ACTS, _TURNS = _read()
_NOTHING = frozenset[int]()


@lru_cache(maxsize=8192)
def meanings(word: str) -> frozenset[int]:
    if found := _MEANINGS.get(word):
        return found
    for length in range(len(word) - 1, _BEGINNING - 2, -1):
        if found := _MEANINGS.get(word[:length]):
            return found
    return _NOTHING


def is_act(word: str) -> bool:
    return bool(meanings(word) & _ACTS)


def turns(word: str) -> frozenset[int]:
    """Return a word's meanings if the table marks all of them with `!`, else no meaning."""
    found = meanings(word)
    return found if found and found <= _TURNS else _NOTHING
